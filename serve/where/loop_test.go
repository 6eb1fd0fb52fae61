package where

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// Loops within loops multiply: five of them over lists that are written out were 10^12 turns, and a
// server computed for hours. The error says what is allowed, and the next letter has its own share.
func TestExpression_BoundsLoopsWithinLoops(t *testing.T) {
	t.Parallel()
	const tooMany, tooLarge = "loops take more than 10000000 steps, the most for one letter", "ranges and lists make more than 1000000 elements, the most for one letter"
	list := "[" + strings.Repeat("1,", 99) + "1]"
	numbers := "[" + strings.Repeat("1,", 100_000) + "1]"
	for _, test := range []struct{ where, value, want string }{
		{"any(" + list + ", any(" + list + ", any(" + list + ", any(" + list + ", # < 0" + strings.Repeat(" and # > 0", 100) + "))))", "{}", tooMany},
		{"all(" + list + ", all(" + list + ", # > 0))", "{}", "yes"},
		{"sum(map(" + list + ", count(" + list + ", # > 0))) == 10000", "{}", "yes"},
		{"len(filter(value, # > 0)) == 100001 and any(value, # + 1 == 2) and none(value, # == 2)", numbers, "yes"},
		{"all(1..100, all(1..100, all(1..100, all(1..100, all(1..100, # > 0)))))", "{}", tooLarge},
		{"all(1..1000, all(1..100, # > 0))", "{}", "yes"},
	} {
		w, err := Compile(test.where)
		if err != nil {
			t.Errorf("%.100s: %v", test.where, err)
			continue
		}
		for range 2 { // one letter does not count for the next
			w.First, w.Failed = nil, 0
			yes := w.Match(&dlq.Letter{Record: &kgo.Record{Topic: "orders.dlq", Value: []byte(test.value)}})
			switch {
			case test.want == "yes" && (!yes || w.First != nil):
				t.Errorf("%.100s: %v, %v", test.where, yes, w.First)
			case test.want != "yes" && (yes || w.First == nil || !strings.HasPrefix(w.First.Error(), "orders.dlq/0/0: column ") || !strings.Contains(w.First.Error(), test.want)):
				t.Errorf("%.100s: %v, %v, want %q", test.where, yes, w.First, test.want)
			}
		}
	}
}
