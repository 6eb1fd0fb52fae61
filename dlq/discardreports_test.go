package dlq

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

const ordersLedger = "orders.dlq.ledger"

// report returns a consumer's discard report about a letter of partition 1.
func report(run string, offset int64) *kgo.Record {
	return discardReport(&Entry{State: Discarded, Run: run, At: time.Now(), By: "group billing"}, ordersLedger, 1, offset)
}

// revocation returns the record that revokes the report.
func revocation(run string, offset int64) *kgo.Record {
	return discardReport(&Entry{Run: run}, ordersLedger, 1, offset)
}

// wantStates checks the states of the letters of partition 1, as the ledger and as Find return
// them, and their numbers by state.
func (k *kafka) wantStates(t *testing.T, l *Ledger, want ...State) {
	t.Helper()
	count := map[State]int64{}
	wantStates(t, l, 1, want...)
	for offset, want := range want {
		count[want]++
		k.wantFound(t, "orders.dlq", 1, int64(offset), want)
	}
	for _, s := range states {
		if got := l.Count(s); got != count[s] {
			t.Errorf("%d letters are %s, want %d", got, s, count[s])
		}
	}
}

// The consumer discards a record whose headers name a run. If the record is from another cluster,
// or the topic was recreated since, the report would hide an unrelated letter.
func TestDiscardReports_CountForTheRunsOwnLettersOnly(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 1, 8)
		goesOn := k.readLedger(t, "orders.dlq")
		id := goesOn.TopicID()
		k.produce(t, ledgerrecord.Run(ordersLedger, "r", []byte(`{"v":1,"id":"r"}`)), ledgerrecord.Run(ordersLedger, "other", []byte(`{"v":1,"id":"other"}`)))
		// Only the report about letter 0 counts. Letter 1 has no entry, 2 is another run's, and 3
		// was redriven on a topic that was deleted since. 4 has an outcome, and the report about 5
		// was revoked. 6 was redriven again by another run. The report about 7 comes before the
		// entry that it was redriven.
		k.record(t, "orders.dlq", 1, 0, Entry{TopicID: id, State: Redriven, Run: "r"})
		k.record(t, "orders.dlq", 1, 2, Entry{TopicID: id, State: Redriven, Run: "other"})
		k.record(t, "orders.dlq", 1, 3, Entry{TopicID: [16]byte{1}, State: Redriven, Run: "r"})
		for _, offset := range []int64{4, 5, 6} {
			k.record(t, "orders.dlq", 1, offset, Entry{TopicID: id, State: Redriven, Run: "r"})
		}
		for offset := range int64(8) {
			k.produce(t, report("r", offset))
		}
		k.produce(t, report("r", 99)) // there is no such letter
		k.record(t, "orders.dlq", 1, 4, Entry{TopicID: id, State: Succeeded, Run: "r"})
		k.record(t, "orders.dlq", 1, 5, Entry{})
		k.record(t, "orders.dlq", 1, 6, Entry{TopicID: id, State: Redriven, Run: "other"})
		k.record(t, "orders.dlq", 1, 7, Entry{TopicID: id, State: Redriven, Run: "r"})
		want := []State{Discarded, "", Redriven, "", Succeeded, "", Redriven, Discarded}
		anew := k.ledger("orders.dlq")
		for _, l := range []*Ledger{goesOn, anew} {
			read(t, l)
			k.wantStates(t, l, want...)
			read(t, l) // nothing more
			k.wantStates(t, l, want...)
		}

		// Later records end the effect of a report: another run, an outcome, a revocation, or
		// another entry.
		k.record(t, "orders.dlq", 1, 0, Entry{TopicID: id, State: Redriven, Run: "other"})
		k.produce(t, revocation("r", 7), revocation("r", 4), report("other", 2))
		k.record(t, "orders.dlq", 1, 1, Entry{TopicID: id, State: Redriven, Run: "r"})
		want = []State{Redriven, Discarded, Discarded, "", Succeeded, "", Redriven, Redriven}
		read(t, goesOn)
		read(t, anew)
		k.wantStates(t, goesOn, want...)
		k.wantStates(t, anew, want...)
		k.produce(t, &kgo.Record{Topic: ordersLedger, Partition: 1, Key: report("r", 1).Key, Value: []byte("?")})
		want[1] = Redriven
		read(t, goesOn)
		k.wantStates(t, goesOn, want...)
	})
}

// The log cleaner keeps the last record of a key. A ledger returns the same states, whichever of
// the other records the cleaner has removed.
func TestDiscardReports_SurviveCompaction(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 1, 4)
		l := k.readLedger(t, "orders.dlq")
		id := l.TopicID()
		k.record(t, "orders.dlq", 1, 0, Entry{TopicID: id, State: Succeeded, Run: "r"})
		k.produce(t, report("of-another-cluster", 0))
		k.record(t, "orders.dlq", 1, 1, Entry{TopicID: id, State: Redriven, Run: "r"})
		k.produce(t, report("r", 1), report("made-up", 1))
		k.record(t, "orders.dlq", 1, 2, Entry{TopicID: id, State: Redriven, Run: "r"})
		k.produce(t, report("r", 2), revocation("r", 2))
		k.record(t, "orders.dlq", 1, 2, Entry{TopicID: id, State: Discarded, Run: "r"})
		k.produce(t, report("r", 3))
		all := collect(t, Records(t.Context(), ordersLedger, nil, k.opts()...))
		compacted := map[string]*kgo.Record{}
		for _, r := range all {
			compacted[string(r.Key)] = r
		}
		want := []State{Succeeded, Discarded, Discarded, ""}
		for name, keep := range map[string]func(*kgo.Record) bool{
			"all of it":                     func(*kgo.Record) bool { return true },
			"what the cleaner leaves":       func(r *kgo.Record) bool { return compacted[string(r.Key)] == r },
			"and what it leaves of that":    func(r *kgo.Record) bool { return compacted[string(r.Key)] == r && r.Value != nil },
			"what it leaves of another key": func(r *kgo.Record) bool { return compacted[string(r.Key)] == r || ParseLedgerRecord(r).Run != "" },
		} {
			l := NewLedger("orders.dlq", ordersLedger)
			l.id = id
			for _, r := range all {
				if keep(r) {
					l.take(ParseLedgerRecord(r))
				}
			}
			_ = l.ended(nil)
			t.Log(name)
			wantStates(t, l, 1, want...)
		}
	})
}

func TestDiscardReports_AreFoundWhereTheyCount(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 1, 12)
		check := func(state State, want ...string) {
			t.Helper()
			letter, notes, err := k.ledger("orders.dlq").Find(t.Context(), 1, 1)
			if err != nil || letter.State != state {
				t.Errorf("%+v, %v; want %q", letter, err, state)
			}
			var got []string
			for _, n := range notes {
				got = append(got, fmt.Sprint(n.Run, " ", n.Letter, " ", n.Entry.State))
			}
			if !slices.Equal(got, want) {
				t.Errorf("notes %q, want %q", got, want)
			}
		}
		k.produce(t, report("r", 1), report("r", 11), report("made-up", 1), &kgo.Record{Topic: ordersLedger, Partition: 1, Key: []byte("run/made-up/discarded/x")})
		check("")
		k.record(t, "orders.dlq", 1, 1, Entry{State: Redriven, Run: "r"})
		check(Discarded, " 1 redriven", "r/discarded/1 1 discarded")
		k.produce(t, revocation("r", 1))
		check(Redriven, " 1 redriven")
		k.produce(t, report("r", 1))
		k.record(t, "orders.dlq", 1, 1, Entry{State: Succeeded, Run: "r"})
		check(Succeeded, " 1 redriven", " 1 succeeded")
	})
}

// The format of a report is a promise, like that of an entry.
func TestDiscardReports_FormatIsStable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 250_000_000, time.UTC)
	said := Entry{State: Discarded, Run: "7f3a", At: at, By: "group billing", Why: "no such SKU", Class: "sku"}
	var got strings.Builder
	for _, r := range []*kgo.Record{discardReport(&said, ordersLedger, 3, 1045), discardReport(&Entry{Run: "7f3a"}, ordersLedger, 3, 1045)} {
		fmt.Fprintf(&got, "%s %s\n", r.Key, r.Value)
		n := ParseLedgerRecord(r)
		if run, _, ok := ledgerrecord.DiscardReportOf(n.Run); r.Topic != ordersLedger || r.Partition != 3 || run != "7f3a" || !ok || n.Letter != 1045 || n.Err != nil {
			t.Errorf("%s is on %s-%d, and read as %+v", r.Key, r.Topic, r.Partition, n)
		}
		if want := map[bool]Entry{false: said, true: {}}[r.Value == nil]; !cmp.Equal(n.Entry, want) {
			t.Errorf("it is read otherwise: %s", cmp.Diff(want, n.Entry))
		}
	}
	golden(t, "hearsay-v1.txt", got.String())
}

func TestDiscardReports_BrokenOnesCountForNothing(t *testing.T) {
	t.Parallel()
	const rest = `,"at":"2026-11-21T03:00:00Z"}`
	for _, c := range []struct {
		key, value string
		hearsay    bool
		err        string
	}{
		{"run/r/discarded/7", `{"v":1,"state":"discarded","run":"r"` + rest, true, ""},
		// of a run that does not exist
		{"run/a/b/discarded/7", `{"v":1,"state":"discarded","run":"a/b"` + rest, true, ""},
		{"run/r/discarded/7", `{"v":1,"state":"succeeded","run":"r"` + rest, true, "it is succeeded, of run"},
		{"run/r/discarded/7", `{"v":1,"state":"discarded","run":"s"` + rest, true, `of run "s"`},
		{"run/r/discarded/7", `{"v":4}`, true, "has version 4"},
		{"run/r/discarded/7", ``, true, "unexpected end"},
		{"run/r/discarded/07", `{}`, false, ""},
		{"run/r/discarded/", `{}`, false, ""},
		{"run//discarded/7", `{}`, false, ""},
		{"run/discarded/7", `{}`, false, ""},
	} {
		n := ParseLedgerRecord(&kgo.Record{Topic: ordersLedger, Partition: 1, Offset: 5, Key: []byte(c.key), Value: []byte(c.value)})
		_, _, hearsay := ledgerrecord.DiscardReportOf(n.Run)
		if hearsay != c.hearsay || n.Run != c.key[len("run/"):] || (n.Letter >= 0) != hearsay || (n.Err != nil) != (c.err != "") {
			t.Errorf("%s %s is read as %+v", c.key, c.value, n)
		}
		if c.err == "" {
			continue
		}
		for _, want := range []string{c.err, ordersLedger + "/1/5", "it is ignored and can stay"} {
			if !strings.Contains(n.Err.Error(), want) {
				t.Errorf("%s %s: %v; want that it says %q", c.key, c.value, n.Err, want)
			}
		}
		l := NewLedger("orders.dlq", ordersLedger)
		l.take(ParseLedgerRecord((&Entry{State: Redriven, Run: "r"}).Record(ordersLedger, 1, 7)))
		l.take(n)
		_ = l.ended(nil)
		if letters, _ := l.Broken(); l.State(1, 7) != Redriven || letters != 0 || l.newer() != nil {
			t.Errorf("%s %s: the letter is %q, %d are broken, %v", c.key, c.value, l.State(1, 7), letters, l.newer())
		}
	}
}
