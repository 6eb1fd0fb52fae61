package dlq

import (
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

func TestPruning_SparesOpenLettersAndThoseBehind(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for p := range int32(2) {
			k.fill(t, "orders.dlq", p, 4)
		}
		for _, offset := range []int64{0, 1, 3} {
			k.record(t, "orders.dlq", 0, offset, Entry{State: Succeeded})
		}
		for offset := range int64(4) {
			k.record(t, "orders.dlq", 1, offset, Entry{State: Discarded})
		}
		l := k.ledger("orders.dlq")
		var progress [2]int64
		p, err := l.Prunable(t.Context(), time.Time{}, func(read, total int64) { progress = [2]int64{read, total} })
		if err != nil {
			t.Fatal(err)
		}
		if want := map[int32]int64{0: 2, 1: 4}; !maps.Equal(p.Until, want) || p.Letters != 6 || p.Open != 0 || p.Discarded != 4 || progress != [2]int64{8, 8} {
			t.Fatalf("prunable %+v, want until %v; progress %d", p, want, progress)
		}
		// to archive it
		k.wantRead(t, "orders.dlq", Filter{}, Cursor{End: p.Until}, "0:0", "0:1", "1:0", "1:1", "1:2", "1:3")
		prune(t, l, p)
		k.wantRead(t, "orders.dlq", Filter{}, Cursor{}, "0:2", "0:3")
		if p = prunable(t, l, time.Time{}); len(p.Until) != 0 {
			t.Errorf("once more: %+v", p)
		}
		prune(t, l, p)
	})
}

// The ledger may get entries after the letters were counted. Only those that spare a letter, or
// could be missed, matter.
func TestPruning_DeletesOnlyWhatMayStillBeDeleted(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for p := range int32(2) {
			k.fill(t, "orders.dlq", p, 3)
			for offset := range int64(3) {
				k.record(t, "orders.dlq", p, offset, Entry{State: Discarded})
			}
		}
		l := k.ledger("orders.dlq")
		p := prunable(t, l, time.Time{})
		k.record(t, "orders.dlq", 1, 2, Entry{State: Reopened})
		err := l.Prune(t.Context(), p, PruneOptions{})
		wantError(t, err, "the letter orders.dlq/1/2 has to stay by now")
		if !errors.Is(err, ErrChanged) {
			t.Errorf("it fails with %v", err)
		}
		old := prunable(t, l, time.Now().Add(time.Hour))
		k.record(t, "orders.dlq", 0, 0, Entry{State: Reopened})
		wantError(t, l.Prune(t.Context(), old, PruneOptions{}), "1 were open or without an outcome and 5 discarded, and by now it is 2 and 4")
		k.wantRead(t, "orders.dlq", Filter{}, Cursor{}, "0:0", "0:1", "0:2", "1:0", "1:1", "1:2")

		k.record(t, "orders.dlq", 0, 0, Entry{State: Discarded})
		l = k.ledger("orders.dlq")
		p = prunable(t, l, time.Time{})
		k.fill(t, "orders.dlq", 0, 2) // they came after the question
		k.record(t, "orders.dlq", 0, 3, Entry{State: Succeeded})
		prune(t, l, p)
		k.wantRead(t, "orders.dlq", Filter{}, Cursor{At: map[int32]int64{0: 3}}, "0:0", "0:1", "1:2")
		if start := k.PartitionInfo("orders.dlq", 0).LogStartOffset; start != 3 {
			t.Errorf("partition 0 begins at %d", start)
		}
	})
}

// The copy of a redriven letter may be lost, and its outcome then stays unknown.
func TestPruning_SparesPendingLetters(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 4)
		k.fill(t, "orders.dlq", 1, 2)
		for offset, state := range []State{Succeeded, Redriven, Failed, Redriven} {
			k.record(t, "orders.dlq", 0, int64(offset), Entry{State: state, Run: "r"})
		}
		for offset, state := range []State{Redriven, Expired} {
			k.record(t, "orders.dlq", 1, int64(offset), Entry{State: state, Run: "r"})
		}
		l := k.ledger("orders.dlq")
		p := prunable(t, l, time.Time{})
		if want := map[int32]int64{0: 1}; !maps.Equal(p.Until, want) || p.Letters != 1 || p.Pending != 3 {
			t.Errorf("prunable %+v, want until %v", p, want)
		}
		p = prunable(t, l, time.Now().Add(time.Hour))
		if want := map[int32]int64{0: 4, 1: 2}; !maps.Equal(p.Until, want) || p.Letters != 6 || p.Open != 3 || p.Pending != 0 {
			t.Errorf("by their age %+v, want until %v", p, want)
		}
	})
}

func TestPruning_ByAgeCountsTheOpenLetters(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "one.dlq", 0, 3)
		newest := time.Now()
		time.Sleep(time.Hour)
		before := time.Now().Add(-time.Minute)
		k.fill(t, "one.dlq", 0, 2)
		k.record(t, "one.dlq", 0, 1, Entry{State: Succeeded})
		if p := prunable(t, k.ledger("one.dlq"), before); p.Until[0] != 3 || p.Letters != 3 || p.Open != 2 || newest.Sub(p.NewestOpen).Abs() > time.Second {
			t.Errorf("prunable %+v, want the 3 that are older", p)
		}
	})
}

// Without the first letter the second could not be recognized as its copy.
func TestPruning_RecordsACopyThatOutlivesItsLetter(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, offset := range []int64{7, 8, 7, 9, 9} { // 8 and 9 are open
			k.write(t, "one.dlq", &kgo.Record{}, from(offset))
		}
		time.Sleep(time.Second)
		k.record(t, "one.dlq", 0, 0, Entry{State: Succeeded})
		l := k.ledger("one.dlq")
		p := prunable(t, l, time.Time{})
		if p.Until[0] != 1 {
			t.Fatalf("prunable %+v", p)
		}
		refused := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "one.dlq.ledger", Err: kerr.InvalidRecord, Count: -1})
		wantError(t, l.Prune(t.Context(), p, PruneOptions{}), "one.dlq/0/2") // the copy
		if got := k.PartitionInfo("one.dlq", 0).LogStartOffset; got != 0 {
			t.Errorf("letters before %d were deleted", got)
		}
		refused.Remove()
		if prune(t, l, p); p.Copies != 1 {
			t.Errorf("it recorded %d copies, want 1", p.Copies)
		}
		l = k.ledger("one.dlq")
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:1", "0:3")
		if l.State(0, 2) != Duplicate || l.State(0, 4) != "" {
			t.Errorf("copies are %q and %q", l.State(0, 2), l.State(0, 4))
		}
	})
}

// Prune deletes an open letter because of its age. Its copy is all that is left of the record.
func TestPruning_SparesTheCopyOfAnOpenLetter(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.write(t, "one.dlq", &kgo.Record{}, from(7))
		time.Sleep(time.Hour)
		before := time.Now()
		k.write(t, "one.dlq", &kgo.Record{}, from(7))
		l := k.ledger("one.dlq")
		p := prunable(t, l, before)
		if p.Until[0] != 1 || p.Open != 1 {
			t.Fatalf("prunable %+v", p)
		}
		prune(t, l, p)
		check(t, k.open(t, k.ledger("one.dlq"), Filter{}, Cursor{}), nil, "0:1")
	})
}

func TestPrunable_NeedsAReadToTheEnd(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 2)
		k.fill(t, "orders.dlq", 1, 2)
		for p := range int32(2) {
			k.record(t, "orders.dlq", p, 0, Entry{State: Succeeded})
		}
		k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
		if p, err := k.ledger("orders.dlq").Prunable(t.Context(), time.Time{}, nil); p != nil || err == nil {
			t.Errorf("prunable %+v, %v", p, err)
		}
	})
}

// A process is suspended when it has announced what it deletes. What happened meanwhile counts when
// it goes on: nothing is deleted that has to stay by then, and nothing is counted twice.
func TestPruning_AfterASuspensionIsJudgedAgain(t *testing.T) {
	for _, c := range []struct {
		about     string
		meanwhile func(t *testing.T, k *kafka)
		err       string
		deleted   int64
		left      []string
	}{
		{"nothing happens", func(*testing.T, *kafka) {}, "", 3, nil},
		{"the server notes something", func(t *testing.T, k *kafka) {
			k.produce(t, ledgerrecord.Run("one.dlq.ledger", "serve/alert/open", []byte("{}")))
		}, "", 3, nil},
		{"a letter is reopened", func(t *testing.T, k *kafka) {
			k.record(t, "one.dlq", 0, 1, Entry{State: Reopened})
		}, "the letter one.dlq/0/1 has to stay by now", 0, []string{"0:0", "0:1", "0:2"}},
		{"a run begins", func(t *testing.T, k *kafka) {
			k.produce(t, ledgerrecord.Run("one.dlq.ledger", "r1", []byte(`{"state":"sending"}`)))
		}, "redrive run r1 is unfinished", 0, []string{"0:0", "0:1", "0:2"}},
		{"another process deletes them", func(t *testing.T, k *kafka) {
			l := k.ledger("one.dlq")
			prune(t, l, prunable(t, l, time.Time{}))
		}, "", 0, nil},
		{"the topic is recreated", func(t *testing.T, k *kafka) {
			admin := kadm.NewClient(k.cl)
			if _, err := admin.DeleteTopic(t.Context(), "one.dlq"); err != nil {
				t.Fatal(err)
			}
			k.create(t, "one.dlq", 1)
			k.cl.PurgeTopicsFromProducing("one.dlq")
			k.fill(t, "one.dlq", 0, 2)
		}, "was recreated", 0, []string{"0:0", "0:1"}},
	} {
		runOnKafka(t, c.about, func(t *testing.T, k *kafka) {
			k.fill(t, "one.dlq", 0, 3)
			for offset := range int64(3) {
				k.record(t, "one.dlq", 0, offset, Entry{State: Discarded})
			}
			announced := sync.OnceFunc(func() { c.meanwhile(t, k) })
			l := NewLedger("one.dlq", "one.dlq.ledger", k.opts(kgo.WithHooks(&interloper{announced}))...)
			p := prunable(t, l, time.Time{})
			if p.Letters != 3 {
				t.Fatalf("prunable %+v", p)
			}
			err := l.Prune(t.Context(), p, PruneOptions{By: "ann"})
			if c.err == "" && err != nil {
				t.Errorf("it fails with %v", err)
			} else if c.err != "" {
				wantError(t, err, c.err)
			}
			k.wantRead(t, "one.dlq", Filter{}, Cursor{}, c.left...)
			for _, r := range k.pruned(t, "one.dlq") {
				if r.By != "ann" {
					continue
				}
				if failed := r.Error != ""; failed != (c.err != "") || !failed && r.Letters != c.deleted {
					t.Errorf("the ledger says %+v, want %d letters, and %q", r, c.deleted, c.err)
				}
			}
			if c.err == "" && p.Letters != c.deleted {
				t.Errorf("%d letters were deleted, want %d", p.Letters, c.deleted)
			}
		})
	}
}
