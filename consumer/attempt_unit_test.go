package consumer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// A context that a goroutine of the handler keeps ends at the latest when the unit goes on, whether
// its Done channel is asked for before or after, or just then.
func TestAttempts_BeginEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	from := bench(t, 0).source.origin
	for range 2000 {
		all := new(attempts)
		all.of(from, make([]*kgo.Record, 2))
		a := all.begin(0, 0)
		if a.ended() || a.Err() != nil {
			t.Fatal("an attempt ended when it began")
		}
		var asked sync.WaitGroup
		asked.Go(func() { <-a.Done() })
		all.begin(1, 0)
		asked.Wait()
		if err := a.Err(); !errors.Is(err, context.Canceled) {
			t.Fatalf("Err is %v, want Canceled", err)
		}
		if drained := a.drained(); drained {
			t.Fatal("it was drained")
		}
	}
}

// A handler may keep its contexts while its unit goes on. Each stays that of its own record, its
// deadline does not move, and it has the rare parts that it had.
func TestAttempts_KeptContextsAreTheirOwn(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := bench(t, time.Minute)
		var recs []*kgo.Record
		for i := range int64(9) { // compaction left gaps
			of := context.WithValue(context.Background(), ctxKey("record"), i)
			recs = append(recs, &kgo.Record{Topic: "orders", Offset: 10 + i*i, Context: of})
		}
		all := new(attempts)
		all.of(l.source.origin, recs)
		var kept []*attempt
		deadlines := map[*attempt]time.Time{}
		redriven := map[*attempt]*headers.Meta{}
		for i, r := range recs {
			l.c.clock.Reading.Store(int64(time.Since(l.c.clock.Base)))
			all.each[i].off = r.Offset
			a := all.begin(i, l.c.clock.Reading.Load())
			kept = append(kept, a)
			if i%3 == 1 {
				redriven[a] = new(headers.Meta)
				a.rareParts().redriven = redriven[a]
			}
			for n, a := range kept {
				if a.ended() != (n < i) {
					t.Errorf("while attempt %d runs, attempt %d ended: %v", i, n, a.ended())
				}
				if got := a.Value(ctxKey("record")); got != int64(n) || DeliveryOf(a, recs[n]).Physical.Offset != recs[n].Offset {
					t.Errorf("while attempt %d runs, the context of attempt %d is that of record %v", i, n, got)
				}
				if a.redriven() != redriven[a] {
					t.Errorf("while attempt %d runs, attempt %d has the headers of another one", i, n)
				}
				if n == i && n%3 == 0 {
					continue // it is asked for its deadline when it has ended
				}
				at, ok := a.Deadline()
				if had, asked := deadlines[a]; !ok || asked && !at.Equal(had) {
					t.Errorf("while attempt %d runs, the deadline of attempt %d is %v, %v; it was %v", i, n, at, ok, had)
				}
				deadlines[a] = at
			}
			time.Sleep(time.Second)
		}
		all.each[8].end()
		for n, a := range kept {
			if !errors.Is(a.Err(), context.Canceled) {
				t.Errorf("attempt %d has Err %v after the unit's end", n, a.Err())
			}
		}
	})
}

// A commit while a unit runs takes what has finished, and no record that failed: its copy may be
// in flight.
func TestRunning_FinishedExcludesWhatFailed(t *testing.T) {
	t.Parallel()
	c := idle(t, Config{Policy: Policy{Breaker: Breaker{Off: true}}}, func() {})
	l := held(c, 0, "m")
	recs := make([]*kgo.Record, 20_000)
	for i := range recs {
		recs[i] = &kgo.Record{Offset: int64(i)}
	}
	u := &unit{feed: &l.source.feed, recs: recs}
	l.units[u] = struct{}{}
	fails := func(offset int64) bool { return offset%7 == 3 }
	r := runner{c: c, lane: l, feed: u.feed, unit: u}
	u.first.of(l.source.origin, recs)
	u.first.begin(0, 0)
	r.finished(0)
	u.current.Store(&u.first)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i, rec := range recs[1:] {
			u.first.each[i+1].off = rec.Offset
			u.first.begin(i+1, 0)
			if fails(rec.Offset) {
				r.report()
			} else {
				r.finished(rec.Offset)
			}
		}
	})
	most := int64(0)
	for last := int64(0); last < int64(len(recs)-2); {
		l.mu.Lock()
		done, some := u.current.finished()
		last = u.first.at.Load() / 2
		l.mu.Unlock()
		if !some {
			continue
		}
		most = max(most, done.Last-done.First+1)
		for at := done.First; at <= done.Last; at++ {
			if fails(at) || at >= last {
				t.Fatalf("offset %d is finished, of %v; attempt %d runs", at, done, last)
			}
		}
	}
	wg.Wait()
	if most == 0 {
		t.Error("nothing was ever finished")
	}
}
