package consumer_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// discardNotes returns the notes in the ledger, as "group original, partition/offset class
// attempts".
func discardNotes(t *testing.T, k *consumertest.Kafka) (all []string) {
	t.Helper()
	for n, err := range dlq.NewLedger("orders.dlq", "orders.dlq.ledger", k.Opts()...).DiscardNotes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(n.At); age < 0 || age > time.Hour {
			t.Errorf("note %+v", n)
		}
		all = append(all, fmt.Sprintf("%s %s, %d/%d %s %d", n.Group, n.Original, n.Partition, n.Offset, n.Class, n.Attempts))
	}
	slices.Sort(all)
	return all
}

// Nothing was left of a discarded record, so an operator could not find out later which ones were
// dropped. The note is safe before the record's offset is committed.
func TestLane_NotesADiscardBeforeItsRecordIsFinished(t *testing.T) {
	type row struct {
		policy   consumer.Policy
		value    []byte
		attempts int
	}
	each(t, map[string]row{
		"by its handler":         {value: []byte("discard"), attempts: 1},
		"by OnTerminal":          {policy: consumer.Policy{OnTerminal: consumer.Discard}, value: []byte("bad"), attempts: 1},
		"after its last attempt": {policy: consumer.Policy{OnExhausted: consumer.Discard, MaxAttempts: 2}, value: []byte("busy"), attempts: 2},
		"as too large to rest":   {policy: consumer.Policy{OnOversize: consumer.Discard}, value: append([]byte("bad"), noise(10_000)...), attempts: 1},
	}, 2, func(t *testing.T, k *consumertest.Kafka, c row) {
		makeSiblings(t, k, 20_000, 9_000)
		c.policy.NoteDiscards = true
		h := k.Run(givingUp(c.policy))
		down := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.UnknownTopicOrPartition, Count: -1})
		r := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Key: []byte("secret key"), Value: c.value, Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("secret")}}})[0]
		time.Sleep(5 * time.Minute) // longer than a discard report would be tried without a ledger
		feed := "orders"
		if c.attempts > 1 {
			feed = "orders.retry.300ms"
		}
		if got := k.Cluster.GroupInfo("billing").Commits[feed][1].Offset; got != 0 {
			t.Errorf("%d is committed before the ledger has the note", got)
		}
		if l := h.Health().Lanes[1]; l.State != consumer.StateBlocked {
			t.Errorf("lane 1 is %+v, want it blocked", l)
		}
		down.Remove()
		committed(t, k, feed, 1, 1)
		if got, want := discardNotes(t, k), fmt.Sprintf("billing orders/1/%d, 1/%d sku %d", r.Offset, r.Offset, c.attempts); !slices.Equal(got, []string{want}) {
			t.Errorf("notes %q, want %q", got, want)
		}
		for _, n := range content(t, k, "orders.dlq.ledger") {
			if all := slices.Concat(n.Key, n.Value); len(n.Headers) != 0 || bytes.Contains(all, []byte("secret")) || bytes.Contains(all, []byte("no such SKU")) {
				t.Errorf("the ledger has %s %s %v", n.Key, n.Value, n.Headers)
			}
		}
		holds(t, k, "orders.dlq", 0)
		isOK(t, h)
	})
}

// A redriven record has its discard report beside the note, and waits for both.
func TestLane_NotesADiscardedRedriveBesidesItsReport(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, unlimited, unlimited)
		k.Run(givingUp(consumer.Policy{NoteDiscards: true}))
		back := headers.Meta{Redrive: headers.Redrive{ID: "run-1", Count: 1, Original: headers.Position{Topic: "orders", Partition: 1}}}
		letter := headers.Position{Topic: "orders.dlq", Offset: 40}
		back.Redrive.From = letter
		// The reports go to partition 0, where the letter is, and the notes to partition 1.
		var slow [2]*kfake.FaultHandle
		for p := range slow {
			slow[p] = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Partitions: []int32{int32(p)}, Err: kerr.NotEnoughReplicas, Count: -1})
		}
		k.Produce(
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("fine")},
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("discard"), Headers: back.AppendSource(nil)},
			broughtBack(letter, []byte("discard")),
		)
		for _, down := range slow {
			time.Sleep(5 * time.Minute)
			if got := k.Cluster.GroupInfo("billing").Commits["orders"][1].Offset; got != 1 {
				t.Errorf("%d is committed before the ledger has both", got)
			}
			down.Remove()
		}
		committed(t, k, "orders", 1, 2)
		committed(t, k, "orders.retry.300ms", 1, 1)
		if got, want := discardNotes(t, k), []string{"billing orders/1/0, 1/1 sku 1", "billing orders/1/7, 1/7 sku 1"}; !slices.Equal(got, want) {
			t.Errorf("notes %q, want %q", got, want)
		}
		reports := 0
		for _, r := range content(t, k, "orders.dlq.ledger") {
			if _, ok := dlq.ParseLedgerRecord(r).DiscardReport(); ok {
				reports++
			}
		}
		if reports != 2 { // of the same letter
			t.Errorf("%d discard reports, want 2", reports)
		}
	})
}

// A record whose original offset is broken was noted as the record at offset 0.
func TestLane_NotesABrokenRecordWhereItIs(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, 20_000, 9_000)
		k.Run(givingUp(consumer.Policy{OnOversize: consumer.Discard, NoteDiscards: true}))
		broken := broughtBack(headers.Position{Topic: "orders.dlq"}, append([]byte("bad"), noise(10_000)...))
		for i, h := range broken.Headers {
			if h.Key == headers.OriginalOffset {
				broken.Headers[i].Value = []byte("x")
			}
		}
		// as if it had been redriven to its source before
		broken.Headers = append(broken.Headers, kgo.RecordHeader{Key: headers.RedriveOriginal, Value: []byte("orders/1/0")})
		k.Produce(broken)
		committed(t, k, "orders.retry.300ms", 1, 1)
		if got, want := discardNotes(t, k), []string{"billing orders.retry.300ms/1/0, 1/0 malformed 0"}; !slices.Equal(got, want) {
			t.Errorf("notes %q, want %q", got, want)
		}
	})
}
