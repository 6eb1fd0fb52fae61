package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// leaveOpen writes records in a transaction that it does not end, and returns the producer's id.
func leaveOpen(t *testing.T, cl *kgo.Client, open []*kgo.Record) int64 {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), open...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	id, _, err := cl.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// awaits waits until health says that lane 1 waits for a producer's transaction, in which these
// records were written.
func awaits(t *testing.T, health func() consumer.Health, producer int64, open []*kgo.Record) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		h := health()
		missing := ""
		for _, r := range open {
			want := fmt.Sprintf("open transaction: %s/1 can be read only up to offset %d, where a transaction of producer id %d, epoch ", r.Topic, r.Offset, producer)
			if !strings.Contains(h.Lanes[1].Why, want) {
				missing = want
			}
		}
		if missing == "" && h.OK && h.Lanes[0].State == consumer.StateRunning && h.Lanes[1].State == consumer.StateWaiting {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: health says %q; it is %+v", missing, h)
		}
	}
}
