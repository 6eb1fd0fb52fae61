package dlq

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A partition of the ledger without a leader hides nothing about the letters of the others, and a
// letter of its own never passes for an open one.
func TestLedger_ReadsTheOthersBesideASilentPartition(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for p := range int32(2) {
			k.fill(t, "orders.dlq", p, 3)
			k.record(t, "orders.dlq", p, 0, Entry{State: Succeeded})
			k.record(t, "orders.dlq", p, 1, Entry{State: Redriven, Run: "r"})
			k.produce(t, discardReport(&Entry{State: Discarded, Run: "r"}, "orders.dlq.ledger", p, 1))
		}
		both := k.freeze(t, "orders.dlq")
		first := Cursor{Topic: both.Topic, At: both.At, End: map[int32]int64{0: both.End[0]}}
		silent := k.silence("orders.dlq.ledger", 1)
		l := k.ledger("orders.dlq")
		wantError(t, l.Read(t.Context(), nil, nil), "partition 1: LEADER_NOT_AVAILABLE")
		if !l.Known(0) || l.Known(1) {
			t.Errorf("partition 0 is known: %v, partition 1: %v", l.Known(0), l.Known(1))
		}
		wantStates(t, l, 0, Succeeded, Discarded, "")
		if got := k.open(t, l, Filter{}, first); len(got) != 1 || got[0] != "0:2" {
			t.Errorf("%v are open in partition 0", got)
		}
		for _, c := range []Cursor{{}, both} {
			for letter, err := range l.Letters(t.Context(), Filter{}, c, OpenOnly) {
				if err == nil {
					t.Errorf("letter %d/%d is open by a ledger that could not be read", letter.Record.Partition, letter.Record.Offset)
				}
			}
		}
		if _, err := l.Summarize(t.Context(), Filter{}, Cursor{}, nil); err == nil {
			t.Error("a summary by a ledger of which a partition could not be read")
		}
		silent.Remove()
		read(t, l)
		wantStates(t, l, 1, Succeeded, Discarded, "")
		if !l.Known(0) || !l.Known(1) {
			t.Error("not all is known after all was read")
		}
	})
}

// A client that lives for one read subscribes to no client metrics, and pushes none: a server makes
// thousands of such clients.
func TestLedger_ReadsWithoutClientMetrics(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		var sent atomic.Int64
		for _, key := range []kmsg.Key{kmsg.GetTelemetrySubscriptions, kmsg.PushTelemetry} {
			k.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
				k.KeepControl()
				sent.Add(1)
				return nil, nil, false
			})
		}
		for i := range 5 {
			k.fill(t, "orders.dlq", 0, 1)
			k.record(t, "orders.dlq", 0, int64(i), Entry{State: Succeeded})
		}
		for range 5 {
			summarize(t, k.readLedger(t, "orders.dlq"))
			k.freeze(t, "orders.dlq")
			k.letters(t, "orders.dlq")
			prunable(t, k.ledger("orders.dlq"), time.Now())
		}
		synctest.Wait()
		if n := sent.Load(); n != 0 {
			t.Errorf("brokers got %d requests about client metrics", n)
		}
	})
}
