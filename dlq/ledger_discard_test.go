package dlq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

func TestLedger_DiscardRecordsWhoAndWhy(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, offset := range []int64{7, 8, 9, 7, 8} { // the last two are copies
			k.write(t, "orders.dlq", &kgo.Record{Partition: 2}, from(offset))
		}
		k.write(t, "orders.dlq", &kgo.Record{Partition: 2}, changed(from(10), func(m *headers.Meta) { m.Class = "other" }))
		time.Sleep(time.Second)
		k.record(t, "orders.dlq", 2, 1, Entry{State: Redriven, Run: "r"})
		frozen := k.freeze(t, "orders.dlq")
		k.write(t, "orders.dlq", &kgo.Record{Partition: 2}, from(11)) // the ledger has not read it
		l := k.ledger("orders.dlq")
		var done []string
		n, err := l.Discard(t.Context(), Filter{Classes: []string{"orders.SKUError"}}, frozen, DiscardOptions{By: "ada", Why: "test data", Done: func(at headers.Position, err error) {
			done = append(done, fmt.Sprint(at, " ", err))
		}})
		if err != nil || n != 2 {
			t.Fatalf("%d letters are discarded, %v; want 2", n, err)
		}
		slices.Sort(done)
		check(t, done, nil, "orders.dlq/2/0 <nil>", "orders.dlq/2/2 <nil>", "orders.dlq/2/3 <nil>", "orders.dlq/2/4 <nil>")
		read(t, l)
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "2:5", "2:6")
		wantStates(t, l, 2, Discarded, Redriven, Discarded, Duplicate, Duplicate, "", "")
		_, notes, err := l.Find(t.Context(), 2, 0)
		if err != nil || len(notes) != 1 {
			t.Fatal(notes, err)
		}
		e := notes[0].Entry
		if now := time.Now(); e.At.After(now) || e.At.Before(now.Add(-time.Hour)) {
			t.Errorf("at %s", e.At)
		}
		e.At = time.Time{}
		if d := cmp.Diff(Entry{TopicID: l.TopicID(), Epochs: 1, State: Discarded, By: "ada", Why: "test data"}, e); d != "" {
			t.Error(d)
		}
	})
}

// Retention deletes a discarded letter, and its copy remains. The copy stays discarded, although
// the filter does not select it, it was delivered more often, and it is far behind its letter.
func TestLedger_DiscardResolvesTheCopiesToo(t *testing.T) {
	cases.Skip(t)
	onKafka(t, func(t *testing.T, k *kafka) {
		k.write(t, "one.dlq", &kgo.Record{}, from(7))
		k.write(t, "one.dlq", &kgo.Record{}, from(8)) // open, and not chosen
		for range lookBack {
			k.produce(t, &kgo.Record{Topic: "one.dlq"})
		}
		for _, offset := range []int64{7, 8} {
			k.write(t, "one.dlq", &kgo.Record{}, changed(from(offset), func(m *headers.Meta) { m.Attempts = 9 }))
		}
		l := k.ledger("one.dlq")
		f := Filter{Ranges: []Range{At(0, 0)}, Match: func(l *Letter) bool { return l.Meta.Attempts < 9 }}
		if n, err := l.Discard(t.Context(), f, Cursor{}, DiscardOptions{By: "ada", Why: "test"}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		k.deleteTo(t, "one.dlq", 0, lookBack+2)
		check(t, k.open(t, k.ledger("one.dlq"), Filter{}, Cursor{}), nil, fmt.Sprint("0:", lookBack+3))
	})
}

func TestLedger_DiscardNeedsAWritableLedger(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for p := range int32(3) {
			k.fill(t, "orders.dlq", p, 1)
		}
		for _, c := range []struct{ ledger, by, why, want string }{
			{"orders.dlq.ledger", "", "test", "options By and Why must not be empty"},
			{"orders.dlq.ledger", "ada", "", "options By and Why must not be empty"},
			// 22,000 letters would put gigabytes into the ledger
			{"orders.dlq.ledger", "ada", strings.Repeat("w", 4097), "option By or Why has 4097 bytes, and 4096 are the most"},
			{"none.ledger", "ada", "test", `"none.ledger" does not exist: create it`},
			{"one.dlq.ledger", "ada", "test", `"one.dlq.ledger" has 1 partitions, "orders.dlq" has 3`},
		} {
			l := NewLedger("orders.dlq", c.ledger, k.opts()...)
			n, err := l.Discard(t.Context(), Filter{}, Cursor{}, DiscardOptions{By: c.by, Why: c.why, Done: func(at headers.Position, err error) { t.Error(at, err) }})
			if n != 0 || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %d, %v", c, n, err)
			}
		}
	})
}

func TestLedger_DiscardNamesLettersThatFailed(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 15)
		k.fill(t, "orders.dlq", 1, 3)
		k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Partitions: []int32{0}, Err: kerr.InvalidRecord, Count: -1})
		l := k.ledger("orders.dlq")
		ok, failed := 0, 0
		n, err := l.Discard(t.Context(), Filter{}, Cursor{}, DiscardOptions{By: "ada", Why: "test", Done: func(at headers.Position, err error) {
			if err == nil {
				ok++
			} else if failed++; !strings.Contains(err.Error(), at.String()) {
				t.Error(err)
			}
		}})
		if n != 3 || ok != 3 || failed != 15 || err == nil {
			t.Fatalf("%d discarded, %d and %d are reported, %v", n, ok, failed, err)
		}
		if text := err.Error(); !strings.Contains(text, "orders.dlq/0/0") || !strings.Contains(text, "and 5 more letters") || strings.Contains(text, "orders.dlq/1/") {
			t.Error(text)
		}
	})
}

// Ctrl-C while a broker does not answer.
func TestLedger_CancelledDiscardNamesUnwrittenLetters(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 2)
		k.fill(t, "orders.dlq", 1, 3)
		l := k.readLedger(t, "orders.dlq")
		k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Partitions: []int32{0}, Err: kerr.NotLeaderForPartition, Count: -1})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Second, cancel)
		start := time.Now()
		n, err := l.Discard(ctx, Filter{}, Cursor{}, DiscardOptions{By: "ada", Why: "test"})
		if n != 3 || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "orders.dlq/0/0") {
			t.Errorf("%d discarded, %v", n, err)
		}
		if took := time.Since(start); took > 25*time.Second {
			t.Errorf("it took %s", took)
		}
		n, err = Import(ctx, "orders.dlq", bytes.NewReader(export(t, letters()...)), ImportOptions{}, k.opts()...)
		if n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d imported, %v", n, err)
		}
	})
}

// A run that begins while letters are being discarded may redrive them, since it has not read the
// discard. The error of Discard names the run.
func TestLedger_DiscardNamesARunThatBeganMeanwhile(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 2)
		run := func(id, state string) {
			k.produce(t, ledgerrecord.Run("one.dlq.ledger", id, []byte(`{"state":"`+state+`"}`)))
		}
		run("r1", "done")
		began := sync.OnceFunc(func() {
			run("r1", "aborted")
			run("r2", "done")
		})
		l := NewLedger("one.dlq", "one.dlq.ledger", k.opts(kgo.WithHooks(&interloper{began}))...)
		n, err := l.Discard(t.Context(), Filter{}, Cursor{}, DiscardOptions{By: "ann", Why: "x"})
		wantError(t, err, "redrive run r2 began meanwhile, and may have redriven letters that are recorded as discarded now")
		if n != 2 || !errors.Is(err, ErrChanged) {
			t.Errorf("%d letters are discarded, %v", n, err)
		}
	})
}
