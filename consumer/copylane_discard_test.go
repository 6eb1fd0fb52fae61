package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/internal/reserved"
)

// broughtBack is a record on the first retry topic as a redrive run writes it: from a letter, due
// at once, without attempts.
func broughtBack(from headers.Position, value []byte) *kgo.Record {
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: 1, Offset: 7}, Group: "billing", NotBefore: time.Now(), Hops: 1,
		Redrive: headers.Redrive{ID: "run-1", Count: 1, From: from},
	}
	return &kgo.Record{Topic: "orders.retry.300ms", Partition: 1, Value: value, Headers: m.Append(nil)}
}

// letter is the position of the letter.
var letter = headers.Position{Topic: "orders.dlq", Partition: 1, Offset: 40}

// discardReports returns the discard reports in the ledger, as "partition/offset state run by
// class".
func discardReports(t *testing.T, k *consumertest.Kafka) (all []string) {
	t.Helper()
	for _, r := range content(t, k, "orders.dlq.ledger") {
		n := dlq.ParseLedgerRecord(r)
		run, _, hearsay := ledgerrecord.DiscardReportOf(n.Run)
		if !hearsay || n.Err != nil {
			t.Fatalf("%s: %v", r.Key, n.Err)
		}
		all = append(all, fmt.Sprintf("%d/%d %s %s %s, %s", r.Partition, n.Letter, n.Entry.State, run, n.Entry.By, n.Entry.Class))
	}
	return all
}

// reported checks the discard reports in the ledger.
func reported(t *testing.T, k *consumertest.Kafka, want ...string) {
	t.Helper()
	if got := discardReports(t, k); !slices.Equal(got, want) {
		t.Errorf("the ledger has %q, want %q", got, want)
	}
}

// givesUp fails a record in the way that its value names.
func givesUp(_ context.Context, r *kgo.Record) error {
	err := classify.As(errors.New("no such SKU"), "sku")
	switch {
	case bytes.HasPrefix(r.Value, []byte("discard")):
		return classify.Discard(err)
	case bytes.HasPrefix(r.Value, []byte("busy")):
		return classify.Retryable(err)
	case bytes.HasPrefix(r.Value, []byte("bad")):
		return classify.Terminal(err)
	}
	return nil
}

func givingUp(p consumer.Policy) consumer.Config {
	cfg := config(givesUp)
	p.Tiers = []time.Duration{tier1}
	cfg.Policy = p
	return cfg
}

// A discarded record leaves no copy, and would count as succeeded.
func TestLane_ReportsADiscardedRedriveToTheLedger(t *testing.T) {
	cases.Skip(t)
	type row struct {
		policy consumer.Policy
		value  []byte
		source bool
	}
	each(t, map[string]row{
		"by its handler":           {value: []byte("discard")},
		"on the source":            {value: []byte("discard"), source: true},
		"by OnTerminal":            {policy: consumer.Policy{OnTerminal: consumer.Discard}, value: []byte("bad")},
		"after its last attempt":   {policy: consumer.Policy{OnExhausted: consumer.Discard, MaxAttempts: 2}, value: []byte("busy")},
		"since it failed too long": {policy: consumer.Policy{OnExhausted: consumer.Discard, MaxAttempts: 9, MaxAge: 100 * time.Millisecond}, value: []byte("busy")},
		"as too large to rest":     {policy: consumer.Policy{OnOversize: consumer.Discard}, value: append([]byte("bad"), noise(10_000)...)},
	}, 2, func(t *testing.T, k *consumertest.Kafka, c row) {
		makeSiblings(t, k, 20_000, 9_000)
		h := k.Run(givingUp(c.policy))
		slow := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.NotEnoughReplicas, Count: -1})
		r := broughtBack(letter, c.value)
		if c.source {
			r = &kgo.Record{Topic: "orders", Partition: 1, Value: c.value, Headers: (&headers.Meta{Redrive: headers.Redrive{ID: "run-1", Count: 1, From: letter}}).AppendSource(nil)}
		}
		at := k.Produce(r)[0]
		time.Sleep(time.Minute)
		before := int64(0)
		if string(c.value) == "busy" { // it is its second copy that is discarded
			before = 1
		}
		if got := k.Cluster.GroupInfo("billing").Commits[at.Topic][1].Offset; got != before {
			t.Errorf("%d is committed before the ledger has it", got)
		}
		if l := h.Health().Lanes[1]; l.State != consumer.StateBlocked {
			t.Errorf("lane 1 is %+v, want it blocked", l)
		}
		slow.Remove()
		eventually(t, "it is finished", func() bool { return k.Cluster.GroupInfo("billing").Commits[at.Topic][1].Offset > before })
		time.Sleep(time.Minute)
		reported(t, k, "1/40 discarded run-1 group billing, sku")
		holds(t, k, "orders.dlq", 0)
		isOK(t, h)
	})
}

func TestLane_ReportsNoOtherDiscardToTheLedger(t *testing.T) {
	t.Parallel()
	mark := func(from headers.Position) []kgo.RecordHeader {
		return (&headers.Meta{Redrive: headers.Redrive{ID: "run-1", Count: 1, From: from}}).AppendSource(nil)
	}
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		makeSiblings(t, k, unlimited, unlimited)
		k.Run(givingUp(consumer.Policy{}))
		other := headers.Position{Topic: "payments.dlq", Partition: 1, Offset: 3}
		last := k.Produce(
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("discard")},
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("discard"), Headers: mark(other)},
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("discard"), Headers: reserved.Without(mark(letter), reserved.SetOf(reserved.RedriveFrom))},
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("discard"), Headers: append(mark(letter), mark(letter)...)},
			broughtBack(other, []byte("discard")),
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("discard"), Headers: (&headers.Meta{Redrive: headers.Redrive{ID: "run-1/selection/0", Count: 1, From: letter}}).AppendSource(nil)},
			broughtBack(letter, []byte("fine")),
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("fine"), Headers: mark(letter)},
		)
		k.Handled(last[7], 1)
		committed(t, k, "orders", 1, last[7].Offset+1)
		committed(t, k, "orders.retry.300ms", 1, 2)
		reported(t, k)
	})
}

// The letters of this dead-letter topic were written by another producer.
func TestLane_DiscardReportGoesToTheLettersPartition(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, unlimited, unlimited)
		c := k.Run(givingUp(consumer.Policy{}))
		k.Produce(broughtBack(headers.Position{Topic: "orders.dlq", Offset: 5}, []byte("discard")))
		committed(t, k, "orders.retry.300ms", 1, 1)
		reported(t, k, "0/5 discarded run-1 group billing, sku")
		// A made-up header names a partition that does not exist: it holds up nothing.
		began := time.Now()
		k.Produce(broughtBack(headers.Position{Topic: "orders.dlq", Partition: 99, Offset: 5}, []byte("discard")))
		committed(t, k, "orders.retry.300ms", 1, 2)
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
		reported(t, k, "0/5 discarded run-1 group billing, sku")
		isOK(t, c)
	})
}

// The whole text of an error was too large for the ledger. The report was given up, and the run
// counted the letter as succeeded.
func TestLane_DiscardReportCutsALongError(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := givingUp(consumer.Policy{})
		cfg.Handler = func(context.Context, *kgo.Record) error {
			return classify.Discard(errors.New("gateway: " + prose(3<<20)))
		}
		k.Run(cfg)
		k.Produce(broughtBack(letter, []byte("v")))
		committed(t, k, "orders.retry.300ms", 1, 1)
		for _, r := range content(t, k, "orders.dlq.ledger") {
			if why := dlq.ParseLedgerRecord(r).Entry.Why; len(why) != headers.MaxMessage || !strings.HasPrefix(why, "gateway: ") {
				t.Errorf("the report has a text of %d bytes: %.40q", len(why), why)
			}
		}
		if n := endOf(k, "orders.dlq.ledger"); n != 1 {
			t.Errorf("the ledger has %d records", n)
		}
	})
}

// A record about a discard that is too large for its ledger was given up, and the record finished.
func TestLane_WaitsForALedgerThatIsTooSmall(t *testing.T) {
	each(t, map[string]bool{"a report": false, "a note": true}, 2, func(t *testing.T, k *consumertest.Kafka, note bool) {
		makeSiblings(t, k, unlimited, unlimited)
		cfg := givingUp(consumer.Policy{NoteDiscards: note})
		log := logged(&cfg)
		c := k.Run(cfg)
		limit(t, k, "orders.dlq.ledger", 100)
		r := broughtBack(letter, []byte("discard"))
		if note {
			r = &kgo.Record{Topic: "orders", Partition: 1, Value: []byte("discard")}
		}
		at := k.Produce(r)[0]
		time.Sleep(5 * time.Minute)
		if got := k.Cluster.GroupInfo("billing").Commits[at.Topic][1].Offset; got != 0 {
			t.Errorf("%d is committed before the ledger has it", got)
		}
		const says = "does not fit into the ledger: raise its max.message.bytes"
		if l := c.Health().Lanes[1]; l.State != consumer.StateBlocked || !strings.Contains(l.Why, says) {
			t.Errorf("lane 1 is %+v, want it blocked by a ledger that is too small", l)
		}
		limit(t, k, "orders.dlq.ledger", 10_000)
		committed(t, k, at.Topic, 1, 1)
		if n := endOf(k, "orders.dlq.ledger"); n != 1 {
			t.Errorf("the ledger has %d records", n)
		}
		stop(t, c)
		if !strings.Contains(log.buf.String(), says) {
			t.Errorf("the log does not say what to do:\n%s", log.buf.String())
		}
	})
}

// Without a ledger there is no run either. A made-up header must not hold up a lane for ever.
func TestLane_GoesOnWhereThereIsNoLedger(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, unlimited, unlimited)
		c := k.Run(givingUp(consumer.Policy{}))
		k.DeleteTopic("orders.dlq.ledger")
		k.Produce(broughtBack(letter, []byte("discard")))
		began := time.Now()
		for k.Cluster.GroupInfo("billing").Commits["orders.retry.300ms"][1].Offset != 1 && time.Since(began) < 5*time.Minute {
			time.Sleep(time.Second)
		}
		if d := time.Since(began); d < 30*time.Second || d >= 5*time.Minute {
			t.Errorf("it went on after %v", d)
		}
		isOK(t, c)
	})
}

// The process dies after it wrote the report and before it committed: the record runs again, and
// the report is written again.
func TestLane_DiscardReportedTwiceIsOne(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, unlimited, unlimited)
		cfg := givingUp(consumer.Policy{})
		var ran atomic.Int32
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			ran.Add(1)
			return givesUp(ctx, r)
		}
		c := k.Run(cfg)
		commits := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.UnknownServerError, Count: -1})
		k.Produce(broughtBack(letter, []byte("discard")))
		eventually(t, "the ledger has it", func() bool { return len(discardReports(t, k)) == 1 })
		_ = c.Err() // it could not commit
		commits.Remove()
		k.Run(cfg)
		committed(t, k, "orders.retry.300ms", 1, 1)
		if got := discardReports(t, k); ran.Load() != 2 || len(got) != 2 || got[0] != got[1] {
			t.Errorf("it ran %d times, and the ledger says %q", ran.Load(), got)
		}
		ledger := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", k.Opts()...)
		if err := ledger.Read(t.Context(), nil, nil); err != nil || ledger.State(1, 40) != "" {
			t.Fatalf("before the run has said that it brought it back, the letter is %q, %v", ledger.State(1, 40), err)
		}
		k.Produce((&dlq.Entry{State: dlq.Redriven, Run: "run-1"}).Record("orders.dlq.ledger", 1, 40))
		if err := ledger.Read(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		if ledger.State(1, 40) != dlq.Discarded || ledger.Count(dlq.Discarded) != 1 {
			t.Errorf("the letter is %q, and %d are discarded", ledger.State(1, 40), ledger.Count(dlq.Discarded))
		}
	})
}

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
			if _, _, ok := ledgerrecord.DiscardReportOf(dlq.ParseLedgerRecord(r).Run); ok {
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
		broken.Headers = append(broken.Headers, kgo.RecordHeader{Key: reserved.RedriveOriginal.String(), Value: []byte("orders/1/0")})
		k.Produce(broken)
		committed(t, k, "orders.retry.300ms", 1, 1)
		if got, want := discardNotes(t, k), []string{"billing orders.retry.300ms/1/0, 1/0 malformed 0"}; !slices.Equal(got, want) {
			t.Errorf("notes %q, want %q", got, want)
		}
	})
}
