package rule

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// A rule for a class would have brought back what a Spring service wrote of it, with the headers of
// that.
func TestRule_LeavesLettersOfOtherPrograms(t *testing.T) {
	t.Parallel()
	all, err := Parse("rules.yaml", []byte("rules: [{name: a, topics: '*', classes: ['java.*']}]"))
	if err != nil {
		t.Fatal(err)
	}
	f := all[0].Selects("orders.dlq", time.Now())
	for dialect, want := range map[string]bool{"": true, "spring": false} {
		l := (&dlq.Letter{Record: &kgo.Record{}, Dialect: dialect, Meta: headers.Meta{Class: "java.lang.Error"}})
		if got := f.Selects(l); got != want {
			t.Errorf("dialect %q: %v, want %v", dialect, got, want)
		}
	}
}
