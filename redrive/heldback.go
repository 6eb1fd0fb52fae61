package redrive

// Finds open transactions that hide letters.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/headers"
)

// heldAfter is how long no letter has an outcome before a poll looks for an open transaction.
const heldAfter = 5 * time.Second

// heldBack names an open transaction that hides letters from their groups; empty if none does.
// fronts are the first copies that wait. The transaction is a stranger's: the run's own copies
// count as sent after their commit.
func heldBack(ctx context.Context, adm *kadm.Client, fronts []headers.Position) string {
	slices.SortFunc(fronts, func(a, b headers.Position) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	var names []string
	for _, at := range fronts {
		names = append(names, at.Topic)
	}
	stable, err := adm.ListCommittedOffsets(ctx, slices.Compact(names)...)
	if err != nil {
		return "" // the next poll asks again
	}
	for _, at := range fronts {
		if s, ok := stable.Lookup(at.Topic, at.Partition); ok && s.Err == nil && s.Offset <= at.Offset {
			return fmt.Sprintf("another producer's transaction, open since offset %d of %s/%d, hides letters from the group: end it, or wait until it expires; "+
				"kafka-transactions.sh find-hanging names its producer", s.Offset, at.Topic, at.Partition)
		}
	}
	return ""
}
