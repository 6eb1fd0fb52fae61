package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// notes yields the notes in a ledger as "group partition/offset attempts", sorted, and the errors.
func (k *kafka) notes(t *testing.T, topic string) (all []string, errs []error) {
	t.Helper()
	for n, err := range k.ledger(topic).DiscardNotes(t.Context()) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, fmt.Sprintf("%s %d/%d %d", n.Group, n.Partition, n.Offset, n.Attempts))
	}
	slices.Sort(all)
	return all, errs
}

func noteAt(group string, partition int32, offset int64, attempts int, at time.Time) *kgo.Record {
	n := DiscardNote{
		Group: group, Partition: partition, Offset: offset, Class: "sku", Attempts: attempts, At: at,
		Original: headers.Position{Topic: "orders", Partition: partition, Offset: offset},
	}
	return n.Record(ordersLedger)
}

// Each discarded record has one note, whatever the ledger still has of it and of others.
func TestLedger_DiscardNotesAreThoseThatCount(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.create(t, "payments.dlq", 1)
		if all, errs := k.notes(t, "payments.dlq"); len(all)+len(errs) != 0 {
			t.Errorf("without a ledger: %q, %v", all, errs)
		}
		now := time.Now()
		gone := noteAt("billing", 0, 9, 1, now)
		deleted := &kgo.Record{Topic: ordersLedger, Key: gone.Key}
		back := noteAt("billing", 0, 8, 2, now)
		broken := DiscardNote{Group: "billing", Offset: 7, Class: "malformed", At: now, Original: headers.Position{Topic: "orders.retry.5s", Offset: 7}}
		k.produce(t,
			broken.Record(ordersLedger), // another record with that number
			// it ran again after a crash, or its topic was recreated
			noteAt("billing", 0, 7, 1, now.Add(-time.Second)), noteAt("billing", 0, 7, 2, now), noteAt("billing", 0, 7, 3, now),
			noteAt("billing", 1, 7, 4, now), noteAt("audit/1", 0, 7, 5, now),
			gone, deleted, &kgo.Record{Topic: ordersLedger, Key: back.Key}, back,
			&kgo.Record{Topic: ordersLedger, Key: []byte("discarded/billing/orders/99"), Value: []byte("{")},
			&kgo.Record{Topic: ordersLedger, Key: []byte("discarded/x"), Value: []byte("{}")},
		)
		k.record(t, "orders.dlq", 0, 7, Entry{State: Discarded, By: "ada", Why: "x"})
		all, errs := k.notes(t, "orders.dlq")
		if want := []string{"audit/1 0/7 5", "billing 0/7 0", "billing 0/7 3", "billing 0/8 2", "billing 1/7 4"}; !slices.Equal(all, want) {
			t.Errorf("notes %q, want %q", all, want)
		}
		if e, ok := errors.AsType[*EntryError](errors.Join(errs...)); len(errs) != 1 || !ok || e.Key != "discarded/billing/orders/99" {
			t.Errorf("errors %v, want one about the broken note", errs)
		}
		for n, err := range k.ledger("orders.dlq").DiscardNotes(t.Context()) {
			if n == nil || err != nil {
				t.Error(n, err)
			}
			break // a reader may stop
		}
	})
}

// A note disturbs no other reader of the ledger: it is about no letter, and is not broken.
func TestLedger_DiscardNotesAreAboutNoLetter(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 8)
		k.produce(t, noteAt("billing", 0, 7, 3, time.Now()), &kgo.Record{Topic: ordersLedger, Key: []byte("discarded/billing/orders/7"), Value: []byte("{")})
		l := k.ledger("orders.dlq")
		readEach(t, l, func(n *LedgerRecord) { t.Errorf("a reader is given %s", n.Record.Key) })
		if n, some := l.Broken(); n != 0 || len(some) != 0 || l.State(0, 7) != "" || len(l.Runs()) != 0 {
			t.Errorf("%d are broken, %v; letter 7 is %q", n, some, l.State(0, 7))
		}
		if _, notes, err := l.Find(t.Context(), 0, 7); err != nil || len(notes) != 0 {
			t.Errorf("letter 7 has the records %v, %v", notes, err)
		}
	})
}

// Notes do not grow for ever.
func TestLedger_PruneDiscardNotesDeletesTheOldOnes(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		now := time.Now()
		for i := range int64(500) {
			k.produce(t, noteAt("billing", int32(i%2), i, 1, now.Add(-time.Duration(i)*time.Hour)))
		}
		broken := &kgo.Record{Topic: ordersLedger, Key: []byte("discarded/billing/orders/7777"), Value: []byte("{")}
		k.produce(t, broken)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if n, err := k.ledger("orders.dlq").PruneDiscardNotes(ended, now); err == nil || n != 0 {
			t.Errorf("without time: %d, %v", n, err)
		}
		n, err := k.ledger("orders.dlq").PruneDiscardNotes(t.Context(), now.Add(-99*time.Hour))
		if err != nil || n != 400 {
			t.Errorf("%d notes deleted, %v; want 400", n, err)
		}
		all, errs := k.notes(t, "orders.dlq")
		if len(all) != 100 || len(errs) != 1 || slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "/100 ") }) {
			t.Errorf("%d notes are left, and %v", len(all), errs)
		}
		if n, err := k.ledger("orders.dlq").PruneDiscardNotes(t.Context(), now.Add(-99*time.Hour)); n != 0 || err != nil {
			t.Errorf("a second time: %d, %v", n, err)
		}
	})
}

// interloper writes a record once a client is about to write.
type interloper struct{ write func() }

func (i *interloper) OnProduceRecordBuffered(*kgo.Record) { i.write() }

// A group was rewound while an operator pruned notes. The consumer noted a discard again just
// before the old note was deleted, which deleted the new one.
func TestLedger_PruneDiscardNotesKeepsWhatIsNotedMeanwhile(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		now := time.Now()
		old := now.Add(-1000 * time.Hour)
		k.produce(t, noteAt("billing", 0, 7, 1, old), noteAt("billing", 0, 8, 1, old), noteAt("billing", 1, 7, 1, old))
		again := sync.OnceFunc(func() {
			k.produce(t, noteAt("billing", 0, 7, 2, now), noteAt("billing", 0, 9, 2, now), noteAt("billing", 1, 7, 3, now))
		})
		l := NewLedger("orders.dlq", ordersLedger, append(k.opts(), kgo.WithHooks(&interloper{again}))...)
		if n, err := l.PruneDiscardNotes(t.Context(), now.Add(-time.Hour)); n != 3 || err != nil {
			t.Errorf("%d notes deleted, %v; want the three old ones", n, err)
		}
		all, errs := k.notes(t, "orders.dlq")
		if want := []string{"billing 0/7 2", "billing 0/9 2", "billing 1/7 3"}; !slices.Equal(all, want) || len(errs) != 0 {
			t.Errorf("notes %q, %v; want %q", all, errs, want)
		}
	})
}
