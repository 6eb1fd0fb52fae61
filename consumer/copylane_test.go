package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
)

// The path of a copy is hot when everything fails.
func TestCopyLane_CostsNothingWithoutHooks(t *testing.T) { // not parallel: it counts allocations
	c := idle(t, Config{}, func() {})
	l := copyLane{held(c, 0, "m")}
	sent := forward.NewCopy(&l.source.feed, 0, kgo.Record{})
	r := &kgo.Record{Topic: "orders.dlq"}
	for _, topic := range []string{"orders.dlq", "orders.retry.5s"} {
		r.Topic = topic
		if n := testing.AllocsPerRun(100, func() { l.Acknowledged(sent, r) }); n != 0 {
			t.Errorf("a copy on %s costs %v allocations for hooks that are not there", topic, n)
		}
	}
}
