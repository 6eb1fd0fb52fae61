package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

func TestLedger_LastEntryCounts(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, c := range []struct {
			says []State
			want State
		}{
			{nil, ""},
			{[]State{Redriven}, Redriven},
			{[]State{Redriven, Succeeded}, Succeeded},
			{[]State{Redriven, Failed}, Failed},
			{[]State{Redriven, Unknown}, Unknown},
			{[]State{Discarded, ""}, ""}, // taken back
			{[]State{Unknown, Expired, Duplicate}, Duplicate},
		} {
			for _, s := range c.says {
				k.record(t, "orders.dlq", 2, 70_000, Entry{State: s})
			}
			l := k.readLedger(t, "orders.dlq")
			if got := l.State(2, 70_000); got != c.want {
				t.Errorf("%q: the letter is %q, want %q", c.says, got, c.want)
			}
			for _, s := range states {
				if got, want := l.Count(s), map[bool]int64{true: 1}[s == c.want]; got != want {
					t.Errorf("%q: %d letters are %s, want %d", c.says, got, s, want)
				}
			}
			// another partition, and the same 16 bits
			if l.State(1, 70_000).Resolves() || l.State(2, 4_464).Resolves() {
				t.Error("a letter is resolved of which nothing is said")
			}
			k.record(t, "orders.dlq", 2, 70_000, Entry{})
		}
	})
}

func TestLedger_IgnoresEntriesAboutADeletedTopic(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 3)
		old := k.readLedger(t, "orders.dlq")
		k.record(t, "orders.dlq", 0, 0, Entry{TopicID: old.TopicID(), State: Succeeded})
		k.record(t, "orders.dlq", 0, 1, Entry{State: Succeeded}) // by one who did not know the id
		k.produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Key: []byte("2"), Value: []byte(`{"v":9,"topicId":"AAECAwQFBgcICQoLDA0ODw"}`)})
		read(t, old)
		check(t, k.open(t, old, Filter{}, Cursor{}), nil, "0:2")

		if err := k.DeleteTopic("orders.dlq"); err != nil {
			t.Fatal(err)
		}
		wantError(t, old.Read(t.Context(), nil, nil), `"orders.dlq" does not exist`)
		k.create(t, "orders.dlq", 3)
		wantError(t, old.Read(t.Context(), nil, nil), "recreated")
		l := k.ledger("orders.dlq")
		seen := 0
		readEach(t, l, func(*LedgerRecord) { seen++ })
		if l.State(0, 0).Resolves() || !l.State(0, 1).Resolves() || seen != 1 {
			t.Errorf("of the entries %d are about the new topic, want 1", seen)
		}
	})
}

func TestLedger_NamesABrokenEntryAndOpensItsLetter(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 4)
		for offset := range int64(4) {
			k.record(t, "one.dlq", 0, offset, Entry{State: Succeeded})
		}
		broken := func(key, value string) {
			k.produce(t, &kgo.Record{Topic: "one.dlq.ledger", Key: []byte(key), Value: []byte(value)})
		}
		broken("1", "{") // offset 4 of the ledger
		broken("2", "")
		broken("garbage", "\x00")
		k.produce(t, &kgo.Record{Topic: "one.dlq.ledger"})
		k.record(t, "one.dlq", 0, 2, Entry{State: Discarded}) // mended
		l := k.readLedger(t, "one.dlq")
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:1")
		n, some := l.Broken()
		if n != 1 || len(some) != 1 {
			t.Fatalf("%d letters have broken entries: %v", n, some)
		}
		for offset, want := range []bool{false, true, false, false, false} {
			if got := l.Unreadable(0, int64(offset)); got != want || l.Unreadable(1, int64(offset)) {
				t.Errorf("what is said of letter %d is unreadable: %t, want %t", offset, got, want)
			}
		}
		if want := `one.dlq.ledger/0/4 with key "1"`; !strings.Contains(some[0].Error(), want) {
			t.Errorf("%v does not name %s", some[0], want)
		}
	})
}

// Records about no letter do no harm. They must not hide the error of a record that does.
func TestLedger_NamesABrokenEntryAmongForeignRecords(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 2)
		for i := range maxBroken + 10 {
			k.produce(t, &kgo.Record{Topic: "one.dlq.ledger", Key: fmt.Appendf(nil, "garbage %d", i)})
		}
		k.produce(t, &kgo.Record{Topic: "one.dlq.ledger", Key: []byte("1"), Value: []byte("{")})
		l := k.readLedger(t, "one.dlq")
		if n, some := l.Broken(); n != 1 || len(some) != 1 || some[0].Key != "1" {
			t.Errorf("%d letters have broken entries, of %d the first is %v", n, len(some), some[0])
		}
	})
}

func TestLedger_NewerEntryIsAnErrorUntilReplaced(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 3)
		k.produce(t, &kgo.Record{Topic: "one.dlq.ledger", Key: []byte("1"), Value: []byte(`{"v":4}`)})
		k.record(t, "one.dlq", 0, 2, Entry{State: Succeeded})
		l := k.ledger("one.dlq")
		err := l.Read(t.Context(), nil, nil)
		if !errors.Is(err, ErrNewerVersion) || !strings.Contains(err.Error(), `one.dlq.ledger/0/0 with key "1"`) {
			t.Fatalf("error %v, want one that names the entry", err)
		}
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:0", "0:1") // the rest was read
		if n, err := l.Discard(t.Context(), Filter{}, Cursor{}, DiscardOptions{By: "ada", Why: "test"}); n != 0 || !errors.Is(err, ErrNewerVersion) {
			t.Errorf("%d letters were discarded, %v; a newer siding knows more about one", n, err)
		}
		k.record(t, "one.dlq", 0, 1, Entry{State: Discarded})
		read(t, l)
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:0")
	})
}

func TestLedger_ReadContinuesWhereItWas(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.record(t, "orders.dlq", 0, 5, Entry{State: Redriven})
		k.record(t, "orders.dlq", 1, 6, Entry{State: Redriven})
		l := k.ledger("orders.dlq")
		notes := func() (keys []string) {
			t.Helper()
			readEach(t, l, func(n *LedgerRecord) { keys = append(keys, fmt.Sprintf("%d %s", n.Letter, n.Entry.State)) })
			slices.Sort(keys)
			return keys
		}
		check(t, notes(), nil, "5 redriven", "6 redriven")
		check(t, notes(), nil)
		k.record(t, "orders.dlq", 0, 5, Entry{State: Succeeded})
		check(t, notes(), nil, "5 succeeded")
		if l.State(0, 5) != Succeeded || l.State(1, 6) != Redriven {
			t.Errorf("letters are %q and %q", l.State(0, 5), l.State(1, 6))
		}
	})
}

// An entry counts once its transaction is committed, even if a read of the ledger stopped before.
func TestLedger_StoppedReadContinuesAndIsNotWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end  kgo.TransactionEndTry
		open []string
	}{{kgo.TryCommit, []string{"0:2"}}, {kgo.TryAbort, []string{"0:1", "0:2"}}} {
		runOnKafka(t, fmt.Sprint(c.end), func(t *testing.T, k *kafka) {
			k.fill(t, "one.dlq", 0, 3)
			k.record(t, "one.dlq", 0, 0, Entry{State: Succeeded})
			cl := k.client(t, kgo.TransactionalID("tx"))
			if err := cl.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			e := Entry{State: Succeeded, At: time.Now()}
			if err := cl.ProduceSync(t.Context(), e.Record("one.dlq.ledger", 0, 1)).FirstErr(); err != nil {
				t.Fatal(err)
			}
			l := k.ledger("one.dlq")
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(3*time.Second, func() { cancel(cause) })
			if err := l.Read(ctx, nil, nil); !errors.Is(err, cause) {
				t.Fatalf("error %v, want the cause of the end", err)
			}
			if !l.State(0, 0).Resolves() || l.State(0, 1).Resolves() {
				t.Error("what was committed is not there, or what is not is")
			}
			if err := cl.EndTransaction(t.Context(), c.end); err != nil {
				t.Fatal(err)
			}
			check(t, k.open(t, l, Filter{}, Cursor{}), nil, c.open...) // reads the rest first
		})
	}
}

func TestLedger_ReadReportsItsProgress(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for offset := range int64(40) {
			k.record(t, "orders.dlq", int32(offset%3), offset, Entry{State: Succeeded})
		}
		l := NewLedger("orders.dlq", "orders.dlq.ledger", k.opts(kgo.FetchMaxBytes(1), kgo.FetchMaxPartitionBytes(1))...)
		var progress []int64
		if err := l.Read(t.Context(), func(read, total int64) {
			if progress = append(progress, read); total != 40 {
				t.Errorf("total %d, want 40", total)
			}
		}, nil); err != nil {
			t.Fatal(err)
		}
		if len(progress) < 3 || !slices.IsSorted(progress) || progress[0] != 0 || progress[len(progress)-1] != 40 {
			t.Errorf("progress %v, want from 0 to 40", progress)
		}
	})
}

func TestLedger_MissingTopicIsEmpty(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 2)
		l := NewLedger("one.dlq", "adopted.ledger", k.opts()...)
		read(t, l)
		if !l.Missing() {
			t.Error("it is not said that there is no ledger")
		}
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:0", "0:1")
		k.create(t, "adopted.ledger", 1)
		e := Entry{State: Discarded, At: time.Now()}
		k.produce(t, e.Record("adopted.ledger", 0, 1))
		read(t, l)
		if l.Missing() || l.State(0, 1) != Discarded {
			t.Errorf("missing %v, letter %q; the ledger was made meanwhile", l.Missing(), l.State(0, 1))
		}
		remove := func() {
			t.Helper()
			if err := k.DeleteTopic("adopted.ledger"); err != nil {
				t.Fatal(err)
			}
		}
		remove()
		k.create(t, "adopted.ledger", 1)
		e = Entry{State: Expired, At: time.Now()}
		cl := k.client(t) // the other one knows the old topic
		if err := cl.ProduceSync(t.Context(), ledgerrecord.Run("adopted.ledger", "r", nil), e.Record("adopted.ledger", 0, 0)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		read(t, l)
		if l.State(0, 0) != Expired || l.State(0, 1).Resolves() {
			t.Errorf("letters are %q and %q by the new ledger", l.State(0, 0), l.State(0, 1))
		}
		remove()
		read(t, l)
		if !l.Missing() || l.State(0, 1).Resolves() {
			t.Errorf("missing %v, letter %q; the ledger was deleted", l.Missing(), l.State(0, 1))
		}
	})
}

func TestLedger_UnreadableTopicIsAnError(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 1)
		k.record(t, "orders.dlq", 0, 0, Entry{State: Succeeded})
		k.record(t, "orders.dlq", 1, 0, Entry{State: Succeeded})
		for _, c := range []struct {
			l    *Ledger
			want string
		}{
			{NewLedger("none.dlq", "none.dlq.ledger", k.opts()...), `"none.dlq" does not exist`},
			{NewLedger("", "", k.opts()...), "is empty"},
			{NewLedger("one.dlq", "one.dlq.ledger", kgo.SeedBrokers()), "seed broker"},
		} {
			wantError(t, c.l.Read(t.Context(), nil, nil), c.want)
			for _, err := range c.l.Letters(t.Context(), Filter{}, Cursor{}, OpenOnly) {
				if err == nil {
					t.Error("a letter is open by a ledger that could not be read")
				}
			}
			if _, err := c.l.Summarize(t.Context(), Filter{}, Cursor{}, nil); err == nil {
				t.Error("a summary of a ledger that could not be read")
			}
		}
		// One partition delivers nothing. The entries of the others count, and Read returns an
		// error.
		stalled := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq.ledger", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
		l := k.ledger("orders.dlq")
		wantError(t, l.Read(t.Context(), nil, nil), "partition 1 delivered nothing")
		stalled.Remove()
		read(t, l)
		if !l.State(0, 0).Resolves() || !l.State(1, 0).Resolves() {
			t.Error("an entry is missing")
		}
	})
}

func TestLedger_KeepsTheStateOfEachRun(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		const ledger = "orders.dlq.ledger"
		elsewhere := ledgerrecord.Run(ledger, "c", []byte("on the wrong partition"))
		elsewhere.Partition = 1
		k.produce(t, ledgerrecord.Run(ledger, "a", []byte("1")), ledgerrecord.Run(ledger, "b", []byte("1")), ledgerrecord.Run(ledger, "a/selection/0", []byte("s")),
			ledgerrecord.Run(ledger, "a", []byte("2")), ledgerrecord.Run(ledger, "b", nil), elsewhere)
		l := k.ledger("orders.dlq")
		var seen []string
		readEach(t, l, func(n *LedgerRecord) {
			seen = append(seen, fmt.Sprintf("%d:%s=%s", n.Record.Partition, n.Run, n.Record.Value))
		})
		slices.Sort(seen)
		check(t, seen, nil, "0:a/selection/0=s", "0:a=1", "0:a=2", "0:b=", "0:b=1", "1:c=on the wrong partition")
		if runs := l.Runs(); len(runs) != 1 || string(runs["a"]) != "2" {
			t.Errorf("runs %q, want the last state of a", runs)
		}
		if n, some := l.Broken(); n != 0 || some != nil {
			t.Errorf("%d broken, %v", n, some)
		}
	})
}

// Not parallel: it measures the heap.
func TestLedger_ResolvedLetterTakesTwoBytes(t *testing.T) {
	cases.Skip(t)
	n := 1_000_000
	for name, every := range map[string]int64{"all": 1, "one in a hundred": 100} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			l := NewLedger("orders.dlq", "orders.dlq.ledger")
			note := &LedgerRecord{Record: &kgo.Record{}, Entry: Entry{State: Redriven}}
			for _, s := range []State{Redriven, Succeeded} {
				for i := range int64(n) {
					note.Letter, note.Entry.State = i*every, s
					l.take(note)
				}
			}
			if got := float64(heap()-before) / float64(n); got > 2.6 {
				t.Errorf("a letter takes %.2f bytes", got)
			}
			if l.Count(Succeeded) != int64(n) || l.Count(Redriven) != 0 {
				t.Error("letters are missing")
			}
		})
	}
}
