package redrive

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// In whatever order entries come, the last entry about each letter counts, as in a map of all
// entries.
func TestLedgerView_TheLastEntryOfALetterCounts(t *testing.T) {
	cases.Alone(t)
	t.Parallel()
	states := []dlq.State{dlq.Redriven, dlq.Redriven, dlq.Succeeded, dlq.Failed, dlq.Failed, dlq.Discarded, dlq.Expired, dlq.Duplicate, dlq.Unknown}
	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 1))
		s, want := newLedgerView(), map[letters.Place]dlq.Entry{}
		for range 500 {
			at := letters.At(draw.Int32N(3), draw.Int64N(60))
			if draw.IntN(10) == 0 {
				s.clear(at)
				delete(want, at)
				continue
			}
			e := dlq.Entry{State: states[draw.IntN(len(states))]}
			switch e.State {
			case dlq.Redriven:
				e.Target = headers.Position{Topic: []string{"a", "b"}[draw.IntN(2)], Partition: draw.Int32N(3), Offset: draw.Int64N(1000)}
			case dlq.Failed:
				e.Class = []string{"", "tax", "sku"}[draw.IntN(3)]
			}
			s.add(at, &e)
			want[at] = e
		}
		got := map[letters.Place]dlq.Entry{}
		s.each(func(at letters.Place, e dlq.Entry) {
			if _, twice := got[at]; twice {
				t.Fatalf("seed %d: %v comes twice", seed, at)
			}
			got[at] = e
		})
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

// About other letters the run or the ledger knows more. About a letter that was not sent a consumer
// knows nothing.
func TestLedgerView_BelievesReportsAboutSentLettersOnly(t *testing.T) {
	t.Parallel()
	s, reported := newLedgerView(), letters.Set{}
	for offset, state := range []dlq.State{dlq.Redriven, dlq.Succeeded, dlq.Failed, dlq.Unknown, "", dlq.Redriven} {
		if state != "" {
			s.add(letters.At(1, int64(offset)), &dlq.Entry{State: state, Target: headers.Position{Topic: "a", Offset: 7}})
		}
		if offset < 5 {
			reported.Add(letters.At(1, int64(offset)))
		}
	}
	reported.Add(letters.At(0, 5))
	s.confirm(reported)
	got := map[int64]dlq.State{}
	s.each(func(at letters.Place, e dlq.Entry) { got[at.Offset] = e.State })
	want := map[int64]dlq.State{0: dlq.Discarded, 1: dlq.Succeeded, 2: dlq.Failed, 3: dlq.Unknown, 5: dlq.Redriven}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// As a map of entries they took half a gigabyte for the status of a run.
func TestLedgerView_OfManyLettersIsSmall(t *testing.T) {
	cases.Alone(t)
	const n = int64(100_000)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s := newLedgerView()
	for i := range n {
		e := dlq.Entry{State: dlq.Redriven, Run: "r", By: "ann", Target: headers.Position{Topic: "orders.retry.5s", Partition: int32(i % 8), Offset: i}}
		n := dlq.ParseLedgerRecord(e.Record("orders.dlq.ledger", int32(i%8), i/8))
		if n.Err != nil {
			t.Fatal(n.Err)
		}
		s.add(letters.At(int32(i%8), n.Letter), &n.Entry)
		if i%2 == 0 {
			s.add(letters.At(int32(i%8), n.Letter), &dlq.Entry{State: dlq.Succeeded})
		}
	}
	if took := heap() - before; took > 48*n {
		t.Errorf("%d letters take %.1f bytes each, want 48 at most", n, float64(took)/float64(n))
	}
	runtime.KeepAlive(s)
}
