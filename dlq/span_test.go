package dlq

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/client"
)

// silence makes the partitions of a topic have no leader.
func (k *kafka) silence(topic string, partitions ...int32) *kfake.FaultHandle {
	return k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets, kmsg.Fetch}, Topic: topic, Partitions: partitions, Err: kerr.LeaderNotAvailable, Count: -1})
}

// A partition without a leader hides no letter of the others: they can be read up to their ends.
func TestFreeze_HasThePartitionsThatAnswer(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 2)
		k.fill(t, "orders.dlq", 1, 3)
		silent := k.silence("orders.dlq", 1)
		c, err := Freeze(t.Context(), "orders.dlq", k.opts()...)
		wantError(t, err, "partition 1: LEADER_NOT_AVAILABLE")
		if c.Topic != "orders.dlq" || c.End[0] != 2 {
			t.Errorf("the cursor is %v", c)
		}
		if _, ok := c.End[1]; ok {
			t.Errorf("the cursor has partition 1: %v", c)
		}
		got, errs := k.read(t.Context(), "orders.dlq", Filter{}, c)
		check(t, got, errs, "0:0", "0:1")
		got, errs = k.read(t.Context(), "orders.dlq", Filter{}, Cursor{})
		if len(got) > 0 || len(errs) != 1 {
			t.Errorf("a read of all partitions yields %v, %v", got, errs)
		}
		silent.Remove()
		if c = k.freeze(t, "orders.dlq"); c.End[0] != 2 || c.End[1] != 3 {
			t.Errorf("with all leaders the cursor is %v", c)
		}
	})
}

func TestFreeze_IsZeroIfNoPartitionAnswers(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 1)
		k.silence("one.dlq", 0)
		for _, topic := range []string{"one.dlq", "none.dlq"} {
			c, err := Freeze(t.Context(), topic, k.opts()...)
			if diff := cmp.Diff(Cursor{}, c); err == nil || diff != "" {
				t.Errorf("%s: %v, %s", topic, err, diff)
			}
		}
	})
}

// While a leader moves, the broker that the client knows denies that it leads, or none leads. A
// verb that reads waits for some seconds until one does.
func TestFreeze_WaitsWhileALeaderMoves(t *testing.T) {
	for name, f := range map[string]kfake.Fault{
		"the former leader answers": {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.NotLeaderForPartition},
		"no broker leads":           {Keys: []kmsg.Key{kmsg.Metadata}, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable},
		"the new one lags":          {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.OffsetNotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			onKafka(t, func(t *testing.T, k *kafka) {
				k.fill(t, "orders.dlq", 0, 3)
				f.Topic, f.Count = "orders.dlq", -1
				time.AfterFunc(client.LeaderMoves-time.Second, k.Fault(f).Remove)
				if c := k.freeze(t, "orders.dlq"); c.End[0] != 3 {
					t.Errorf("the end is %v, want 3", c.End)
				}
				k.Fault(f)
				began := time.Now()
				_, err := Freeze(t.Context(), "orders.dlq", k.opts()...)
				wantError(t, err, f.Err.Message)
				if took := time.Since(began); took > time.Minute {
					t.Errorf("a leader that does not come is an error after %v", took)
				}
			})
		})
	}
}
