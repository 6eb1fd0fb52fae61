package console

import (
	"slices"
	"testing"

	"github.com/sidingkafka/siding/serve/api"
)

// What the numbers are worth is said beside them; numbers of all letters need no words.
func TestNewWhomCounts_SaysWhatTheyAreWorth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		v    api.Values
		want []string
	}{
		{api.Values{Counted: 9, Complete: true, Exact: true}, nil},
		{api.Values{Counted: 20_000, Exact: true}, []string{"These are the newest 20,000 letters: there was no time for the others."}},
		{api.Values{Complete: true, Problem: "where failed on 1 letter"}, []string{"There are more than 10,000 values, so the numbers are at most these.", "where failed on 1 letter."}},
	} {
		if got := newWhomCounts(&test.v).Says; !slices.Equal(got, test.want) {
			t.Errorf("of %+v it says %q, want %q", test.v, got, test.want)
		}
	}
}
