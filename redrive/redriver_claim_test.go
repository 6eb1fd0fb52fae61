package redrive_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
)

// noSelections checks that a compaction of the ledger keeps no piece of a selection.
func noSelections(t *testing.T, k *consumertest.Kafka) {
	t.Helper()
	kept := map[string]bool{}
	for _, r := range on(t, k, "orders.dlq.ledger") {
		switch {
		case !bytes.Contains(r.Key, []byte("/selection/")):
		case r.Value == nil:
			delete(kept, string(r.Key))
		default:
			kept[string(r.Key)] = true
		}
	}
	if len(kept) != 0 {
		t.Errorf("the ledger keeps %v", kept)
	}
}

// The ledger is compacted: a record with its own key stays for ever.
func TestClaim_ThatFailsLeavesNoSelection(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r := redriver(t, k, kgo.ProducerBatchCompression(kgo.NoCompression()))
		p := plan(t, r)
		f := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidRecord, Count: -1, When: writes(`"state":"canary"`)})
		if _, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil)); !errors.Is(err, kerr.InvalidRecord) || f.Hits() == 0 {
			t.Fatal(err, f.Hits())
		}
		noSelections(t, k)
	})
}

// A process crashed before its claim, which can happen with a large selection.
func TestClaim_RemovesSelectionsThatNoRunClaimed(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r := redriver(t, k)
		k.Produce(ledgerrecord.Run("orders.dlq.ledger", "crashed/selection/0", []byte("{}")), ledgerrecord.Run("orders.dlq.ledger", "crashed/selection/1", []byte("{}")))
		succeeds(t, 20)(r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Window: 2 * time.Second}, nil)))
		noSelections(t, k)
	})
}
