package selection

import (
	"github.com/sidingkafka/siding/dlq"
	letterset "github.com/sidingkafka/siding/redrive/internal/letters"
)

// Only returns a filter that selects letters of a set alone, and counts the others that fit.
func Only(of letterset.Set, f dlq.Filter) (filter dlq.Filter, others *int64) {
	others = new(int64)
	fits := f.Match
	f.Match = func(l *dlq.Letter) bool {
		if fits != nil && !fits(l) {
			return false
		}
		if of.Has(letterset.At(l.Record.Partition, l.Record.Offset)) {
			return true
		}
		*others++
		return false
	}
	return f, others
}
