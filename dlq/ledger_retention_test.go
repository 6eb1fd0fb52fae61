package dlq

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// old writes letters to a partition, each with its age as its value.
func (k *kafka) old(t *testing.T, topic string, partition int32, ages ...time.Duration) {
	t.Helper()
	for _, age := range ages {
		k.produce(t, &kgo.Record{
			Topic: topic, Partition: partition, Timestamp: time.Now().Add(-age), Value: []byte(age.String()),
			Headers: []kgo.RecordHeader{header(headers.FailureReason, string(headers.ReasonTerminal))},
		})
	}
}

func prunableBy(t *testing.T, l *Ledger, r Retention) *Prunable {
	t.Helper()
	p, err := l.PrunableBy(t.Context(), r, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const day = 24 * time.Hour

// modelLetter is a letter of the naive model.
type modelLetter struct {
	at        time.Time
	partition int32
	offset    int64
	state     State
}

// modelPrunable is the naive model: it sorts all letters by age, marks those beyond the limits, and
// then walks each partition from its beginning.
func modelPrunable(all []modelLetter, r Retention, now time.Time) (until map[int32]int64, letters, open, held int64) {
	byAge := slices.Clone(all)
	slices.SortFunc(byAge, func(a, b modelLetter) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.partition, b.partition), cmp.Compare(a.offset, b.offset))
	})
	beyond := map[place]bool{}
	for i, l := range byAge {
		tooOld := r.MaxAge > 0 && l.at.Before(now.Add(-r.MaxAge))
		tooMany := r.MaxCount > 0 && int64(len(byAge)-i) > r.MaxCount
		beyond[place{l.partition, l.offset}] = tooOld || tooMany
	}
	until = map[int32]int64{}
	stuck := map[int32]bool{}
	for _, l := range all { // in the order of their offsets
		isOpen := !l.state.Resolves() || l.state == Redriven
		is := beyond[place{l.partition, l.offset}]
		if !is || isOpen && !r.Open {
			stuck[l.partition] = true
		}
		switch {
		case !stuck[l.partition]:
			until[l.partition] = l.offset + 1
			letters++
			if isOpen {
				open++
			}
		case is:
			held++
		}
	}
	return until, letters, open, held
}

// Random letters, ages and states: what is counted is what a naive model finds, and what is then
// deleted is what was counted.
func TestPrunableBy_DecidesAsTheNaiveModel(t *testing.T) {
	cases.Skip(t)
	onKafka(t, func(t *testing.T, k *kafka) {
		rnd := rand.New(rand.NewPCG(17, 6))
		for round := range 150 {
			topic := fmt.Sprintf("t%d.dlq", round)
			k.create(t, topic, 3)
			k.create(t, topic+".ledger", 3)
			now := time.Now().Truncate(time.Millisecond)
			var all []modelLetter
			var records []*kgo.Record
			oftenOpen, wild := rnd.IntN(4), rnd.IntN(3) == 0
			for p := range int32(3) {
				at := now.Add(-time.Duration(rnd.IntN(20*24)) * time.Hour)
				for offset := range int64(rnd.IntN(12)) {
					// clocks differ
					if at = at.Add(time.Duration(rnd.IntN(3)) * 12 * time.Hour); wild {
						at = now.Add(-time.Duration(rnd.IntN(20)) * day)
					}
					l := modelLetter{at: at, partition: p, offset: offset}
					if rnd.IntN(4) >= oftenOpen {
						l.state = states[rnd.IntN(len(states))]
					}
					all = append(all, l)
					records = append(records, &kgo.Record{Topic: topic, Partition: p, Timestamp: at})
					if l.state != "" {
						e := Entry{State: l.state, At: now, Run: "r"}
						records = append(records, e.Record(topic+".ledger", p, offset))
					}
				}
			}
			k.produce(t, records...)
			r := Retention{MaxAge: time.Duration(rnd.IntN(20)) * day, MaxCount: rnd.Int64N(30), Open: rnd.IntN(3) == 0}
			if r.MaxAge == 0 && r.MaxCount == 0 {
				r.MaxCount = 1
			}
			l := k.ledger(topic)
			p, err := l.PrunableBy(t.Context(), r, now, nil)
			if err != nil {
				t.Fatal(err)
			}
			until, letters, open, held := modelPrunable(all, r, now)
			if !maps.Equal(p.Until, until) || p.Letters != letters || p.Open != open || p.Held != held {
				t.Fatalf("round %d, %+v: until %v, %d letters, %d open, %d held; the model has %v, %d, %d, %d, of %v",
					round, r, p.Until, p.Letters, p.Open, p.Held, until, letters, open, held, all)
			}
			if err := l.Prune(t.Context(), p, PruneOptions{By: "retention"}); err != nil {
				t.Fatal(err)
			}
			for partition := range int32(3) {
				if start := k.PartitionInfo(topic, partition).LogStartOffset; start != until[partition] {
					t.Fatalf("round %d: partition %d begins at %d, and %d was counted", round, partition, start, until[partition])
				}
			}
			again, err := k.ledger(topic).PrunableBy(t.Context(), r, now, nil)
			if err != nil || again.Letters != 0 {
				t.Fatalf("round %d: once more it would delete %d letters, %v", round, again.Letters, err)
			}
		}
	})
}

func TestPrunableBy_NeedsALimit(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		l := k.ledger("orders.dlq")
		for _, r := range []Retention{{}, {Open: true}, {MaxAge: -1}, {MaxCount: -1, MaxAge: day}} {
			if p, err := l.PrunableBy(t.Context(), r, time.Now(), nil); err == nil {
				t.Errorf("%+v is taken, and gives %+v", r, p)
			}
		}
	})
}

// Kafka deletes from the beginning only: an open letter keeps those at higher offsets, and the
// result names it.
func TestPrunableBy_AnOpenLetterHoldsUpThoseBehind(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.old(t, "one.dlq", 0, 90*day, 80*day, 70*day, time.Hour)
		k.record(t, "one.dlq", 0, 0, Entry{State: Succeeded})
		k.record(t, "one.dlq", 0, 2, Entry{State: Discarded})
		l := k.ledger("one.dlq")
		if p := prunableBy(t, l, Retention{MaxAge: 30 * day}); p.Until[0] != 1 || p.Letters != 1 || p.Held != 2 {
			t.Errorf("prunable %+v, want the first letter, and two that are held", p)
		}
		p := prunableBy(t, l, Retention{MaxAge: 30 * day, Open: true})
		if p.Until[0] != 3 || p.Letters != 3 || p.Open != 1 || p.Held != 0 {
			t.Errorf("with open ones prunable %+v, want the first three", p)
		}
		prune(t, l, p)
		k.wantRead(t, "one.dlq", Filter{}, Cursor{}, "0:"+time.Hour.String())
	})
}

// Without the announcement nothing is deleted, and the ledger has the end of each pruning.
func TestPrune_IsAnnouncedBefore(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.old(t, "one.dlq", 0, 90*day, 80*day)
		k.record(t, "one.dlq", 0, 0, Entry{State: Discarded})
		l := k.ledger("one.dlq")
		p := prunableBy(t, l, Retention{MaxAge: 85 * day})
		o := PruneOptions{By: "retention", Why: "max-age 85d", Archive: "s3://letters/one.dlq/x.jsonl.gz"}
		refused := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "one.dlq.ledger", Err: kerr.InvalidRecord, Count: -1})
		wantError(t, l.Prune(t.Context(), p, o), "nothing was deleted: record it in \"one.dlq.ledger\"")
		refused.Remove()
		if start := k.PartitionInfo("one.dlq", 0).LogStartOffset; start != 0 {
			t.Errorf("the partition begins at %d", start)
		}
		denied := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DeleteRecords}, Topic: "one.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
		wantError(t, l.Prune(t.Context(), p, o), "delete records of partition 0 before offset 1: TOPIC_AUTHORIZATION_FAILED")
		denied.Remove()
		time.Sleep(time.Second)
		prune := time.Now()
		if err := l.Prune(t.Context(), p, o); err != nil {
			t.Fatal(err)
		}
		pruned := k.pruned(t, "one.dlq")
		if len(pruned) != 2 {
			t.Fatalf("the ledger has %+v", pruned)
		}
		failed, done := pruned[0], pruned[1]
		if failed.Error == "" || !failed.Deleted.IsZero() {
			t.Errorf("the one that failed is recorded as %+v", failed)
		}
		if done.By != o.By || done.Why != o.Why || done.Archive != o.Archive || done.Letters != 1 || done.Discarded != 1 || done.Open != 0 || done.Until[0] != 1 ||
			done.Error != "" || done.At.Before(prune) || done.Deleted.Before(done.At) || done.TopicID != l.TopicID() {
			t.Errorf("it is recorded as %+v", done)
		}
		// Other readers of the ledger see no run and no entry in it.
		l = k.readLedger(t, "one.dlq")
		if n, broken := l.Broken(); n+int64(len(broken)) > 0 || len(l.Runs()) > 0 {
			t.Errorf("the ledger has %d broken entries and the runs %v", n, l.Runs())
		}
	})
}

// A run may be about to send the letters: they stay until it has ended.
func TestPrune_WaitsForAnUnfinishedRun(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.old(t, "one.dlq", 0, 90*day)
		l := k.ledger("one.dlq")
		p := prunableBy(t, l, Retention{MaxAge: day, Open: true})
		k.produce(t, ledgerrecord.Run("one.dlq.ledger", "r", []byte(`{"state":"sending"}`)))
		if err := l.Prune(t.Context(), p, PruneOptions{}); !errors.Is(err, ErrUnfinishedRun) {
			t.Errorf("it ends with %v", err)
		}
		k.wantRead(t, "one.dlq", Filter{}, Cursor{}, "0:2160h0m0s")
		k.produce(t, ledgerrecord.Run("one.dlq.ledger", "r", []byte(`{"state":"done"}`)))
		prune(t, l, p)
		k.wantRead(t, "one.dlq", Filter{}, Cursor{})
	})
}
