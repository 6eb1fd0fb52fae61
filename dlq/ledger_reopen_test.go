package dlq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// A wrong filter discarded letters that are needed. Before, only a record written by hand opened
// them again.
func TestLedger_ReopenWithdrawsADiscard(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, offset := range []int64{7, 8, 9, 10, 11, 12, 7} { // the last is a copy
			k.write(t, "orders.dlq", &kgo.Record{Partition: 2}, from(offset))
		}
		time.Sleep(time.Second)
		k.record(t, "orders.dlq", 2, 3, Entry{State: Succeeded, Run: "r"})
		k.record(t, "orders.dlq", 2, 4, Entry{State: Discarded, Run: "r", By: "group billing", Why: "not ours"})
		l := k.ledger("orders.dlq")
		for _, o := range []struct {
			at          int64
			compensated bool
		}{{0, false}, {1, true}} {
			f := Filter{Ranges: []Range{At(2, o.at)}}
			if n, err := l.Discard(t.Context(), f, Cursor{}, DiscardOptions{By: "ada", Why: "test", Compensated: o.compensated}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		read(t, l)
		wantStates(t, l, 2, Discarded, Compensated, "", Succeeded, Discarded, "", Duplicate)
		var done []string
		n, err := l.Reopen(t.Context(), Filter{}, Cursor{}, ReopenOptions{By: "ben", Why: "they are real", Done: func(at headers.Position, err error) {
			done = append(done, fmt.Sprint(at, " ", err))
		}})
		if n != 3 || err != nil {
			t.Fatalf("%d letters are reopened, %v; want 3", n, err)
		}
		slices.Sort(done)
		check(t, done, nil, "orders.dlq/2/0 <nil>", "orders.dlq/2/1 <nil>", "orders.dlq/2/4 <nil>")
		read(t, l)
		wantStates(t, l, 2, Reopened, Reopened, "", Succeeded, Reopened, "", "")
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "2:0", "2:1", "2:2", "2:4", "2:5")
		letter, notes, err := l.Find(t.Context(), 2, 0)
		if err != nil || letter.State != Reopened || len(notes) == 0 {
			t.Fatal(letter, notes, err)
		}
		e := notes[len(notes)-1].Entry
		e.At = time.Time{}
		if d := cmp.Diff(Entry{TopicID: l.TopicID(), Epochs: 1, State: Reopened, By: "ben", Why: "they are real"}, e); d != "" {
			t.Error(d)
		}
		if n, err := l.Reopen(t.Context(), Filter{}, Cursor{}, ReopenOptions{By: "ben", Why: "again"}); n != 0 || err != nil {
			t.Errorf("%d letters are reopened twice, %v", n, err)
		}
		// and it can be discarded anew
		if n, err := l.Discard(t.Context(), Filter{Ranges: []Range{At(2, 0)}}, Cursor{}, DiscardOptions{By: "ada", Why: "test"}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		read(t, l)
		wantStates(t, l, 2, Discarded, Reopened, "", Succeeded, Reopened, "", Duplicate)
	})
}

// Both letters of a record were discarded, and the first one again after the second had failed.
// That action would cover the second, which the operator wants back.
func TestLedger_ReopenShowsALetterThatALaterDiscardCovers(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		discard := func(offset int64) {
			time.Sleep(time.Minute)
			k.record(t, "one.dlq", 0, offset, Entry{State: Discarded})
			time.Sleep(time.Minute)
		}
		k.write(t, "one.dlq", &kgo.Record{}, failing(7))
		discard(0)
		k.write(t, "one.dlq", &kgo.Record{}, failing(7))
		discard(1)
		k.record(t, "one.dlq", 0, 0, Entry{State: Reopened})
		discard(0)
		l := k.ledger("one.dlq")
		if n, err := l.Reopen(t.Context(), Filter{Ranges: []Range{At(0, 1)}}, Cursor{}, ReopenOptions{By: "ben", Why: "x"}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		read(t, l)
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:1")
		k.wantPruned(t, 1)
	})
}

// The consumer reported the discard, and no process has recorded it yet. The report stays in the
// ledger under its own key, and must not hide the letter again.
func TestLedger_ReopenWithdrawsADiscardReport(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.write(t, "one.dlq", &kgo.Record{}, from(7))
		k.record(t, "one.dlq", 0, 0, Entry{State: Redriven, Run: "r"})
		report := Entry{State: Discarded, Run: "r", At: time.Now(), By: "group billing"}
		k.produce(t, discardReport(&report, "one.dlq.ledger", 0, 0))
		l := k.readLedger(t, "one.dlq")
		wantStates(t, l, 0, Discarded)
		if n, err := l.Reopen(t.Context(), Filter{}, Cursor{}, ReopenOptions{By: "ben", Why: "x"}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		read(t, l)
		wantStates(t, l, 0, Reopened)
		wantStates(t, k.readLedger(t, "one.dlq"), 0, Reopened)
		if n := l.Pending("r"); n != 0 {
			t.Errorf("%d letters of the run are pending", n)
		}
		// The same run sends it once more: the report about the first time counts no more.
		k.record(t, "one.dlq", 0, 0, Entry{State: Redriven, Run: "r"})
		wantStates(t, k.readLedger(t, "one.dlq"), 0, Redriven)
	})
}

func TestLedger_ReopenNeedsAWritableLedger(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 1)
		k.record(t, "one.dlq", 0, 0, Entry{State: Discarded})
		l := k.ledger("one.dlq")
		for _, o := range []ReopenOptions{{By: "ben"}, {Why: "x"}} {
			if n, err := l.Reopen(t.Context(), Filter{}, Cursor{}, o); n != 0 || err == nil || !strings.Contains(err.Error(), "options By and Why must not be empty") {
				t.Errorf("%+v: %d, %v", o, n, err)
			}
		}
		k.produce(t, &kgo.Record{Topic: "one.dlq.ledger", Key: []byte("1"), Value: []byte(`{"v":9}`)})
		if n, err := k.ledger("one.dlq").Reopen(t.Context(), Filter{}, Cursor{}, ReopenOptions{By: "ben", Why: "x"}); n != 0 || !errors.Is(err, ErrNewerVersion) {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// A run that may be unfinished is one: its record may be of a later version.
func TestLedger_ReopenRefusesWhereARunMayBeUnfinished(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 3)
		k.record(t, "orders.dlq", 0, 1, Entry{State: Discarded, At: time.Now(), By: "ada", Why: "x"})
		for _, c := range []struct{ run, want string }{
			{`{"v":1,"id":"r-1","state":"sending"}`, "redrive run r-1 is unfinished (sending): resume or abort it first, or wait until it ends"},
			{`{"v":9,"id":"r-1","state":"dreaming"}`, "redrive run r-1 is unfinished (dreaming)"},
			{`{"v":1,"id":"r-1"}`, "redrive run r-1 is unfinished ()"},
			{`{`, `the record of run r-1 in "orders.dlq.ledger" cannot be read, and the run may be unfinished: `},
			{`{"v":1,"id":"r-1","state":"done"}`, ""},
			{`{"v":1,"id":"r-1","state":"aborted"}`, ""},
		} {
			k.produce(t, ledgerrecord.Run(ordersLedger, "r-1", []byte(c.run)))
			_, reopened := k.ledger("orders.dlq").Reopen(t.Context(), Filter{}, Cursor{}, ReopenOptions{By: "ben", Why: "x"})
			_, discarded := k.ledger("orders.dlq").Discard(t.Context(), Filter{Ranges: []Range{At(0, 2)}}, Cursor{}, DiscardOptions{By: "ben", Why: "x"})
			for what, err := range map[string]error{"reopen": reopened, "discard": discarded} {
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s, with %s: %v, want %q", what, c.run, err, c.want)
				}
			}
		}
	})
}
