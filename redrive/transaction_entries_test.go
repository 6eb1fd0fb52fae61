package redrive

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// The text around an offset is kept for the next entry. A kept text of another target, state or
// epoch would name the place of another copy.
func TestEntries_AreThoseOfTheLedger(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	e := dlq.Entry{
		TopicID: [16]byte{1, 2}, Run: "20260102-150405-0a1b2c", At: time.Unix(1, 5), By: "ann",
		Why: `9223372036854775807 letters of "é"`, Edited: []string{"headers", "value"},
	}
	s := entries{ledger: "orders.dlq.ledger", entry: e}
	var got, want []*kgo.Record
	for range 5_000 {
		o := &outgoing{Place: letters.At(rnd.Int32N(3), rnd.Int64())}
		o.copy.Topic, o.copy.Partition, o.copy.Offset = []string{"orders.retry.5s", "bills.retry.5s"}[rnd.IntN(2)], rnd.Int32N(3), rnd.Int64N(1<<rnd.IntN(63))
		e.State, e.Epochs = []dlq.State{dlq.Redriven, dlq.Unfollowed}[rnd.IntN(2)], rnd.Int32N(2)
		got = append(got, s.record(o, e.State, e.Epochs))
		e.Target = o.target()
		want = append(want, e.Record(s.ledger, o.Partition, o.Offset))
	}
	for i := range got {
		if d := cmp.Diff(string(want[i].Value), string(got[i].Value)); d != "" || string(want[i].Key) != string(got[i].Key) ||
			want[i].Topic != got[i].Topic || want[i].Partition != got[i].Partition {
			t.Fatalf("entry %d is %s/%d %s %s", i, got[i].Topic, got[i].Partition, got[i].Key, d)
		}
	}
}
