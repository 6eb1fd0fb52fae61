package console

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

// The link of a group shows its letters and no others. No filter selects letters without a class
// and a fingerprint: the link was to all letters, as if they were the group's.
func TestGroupOf_LinksToItsLettersAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		class, fingerprint, want string
	}{
		{"a", "f", "/t?class=a&fingerprint=f#letters"},
		{"", "f", "/t?fingerprint=f#letters"},
		{"a", "", "/t?class=a#letters"},
		{"", "", ""},
	} {
		if got := groupOf(api.Group{Class: test.class, Fingerprint: test.fingerprint}, 0, &Filter{}, "/t", time.Now()).Link; got != test.want {
			t.Errorf("the group of class %q and fingerprint %q links to %q, want %q", test.class, test.fingerprint, got, test.want)
		}
	}
}
