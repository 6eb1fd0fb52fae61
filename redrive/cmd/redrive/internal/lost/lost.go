// Package lost selects the pending letters whose copies no consumer can have.
package lost

import (
	"fmt"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// maxNamed is how many copies are named.
const maxNamed = 10

// Narrow makes a filter select only letters with a lost copy. It names the first ten copies.
func Narrow(f *dlq.Filter, copies *redrive.LostCopies, name func(text string)) {
	named, fits := letters.Set{}, f.Match
	f.Match = func(l *dlq.Letter) bool {
		place := letters.At(l.Record.Partition, l.Record.Offset)
		at := place.In(l.Record.Topic)
		copied, why := copies.Of(at)
		if why == "" || fits != nil && !fits(l) {
			return false
		}
		if named.Len() < maxNamed && named.Add(place) {
			name(fmt.Sprintf("letter %s: its copy is at %s, and %s", at, copied, why))
		}
		return true
	}
}
