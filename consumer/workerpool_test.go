package consumer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Lanes are served in turn: each until the clock moves.
func TestWorkerPool_ServesLanesInTurn(t *testing.T) {
	virtual(t, func(t *testing.T) {
		const lanes, units, each = 5, 21, 3
		var served []int32
		s, all := pooled(t, OrderPartition, 1, lanes, func(u *unit) {
			u.ran = len(u.recs)
			if served = append(served, u.feed.lane.partition); len(served)%each == 0 {
				u.feed.lane.c.clock.Reading.Add(1)
			}
		})
		for _, l := range all {
			for range units {
				l.source.batches.Push(batch{recs: []*kgo.Record{{}}})
			}
		}
		s.mu.Lock()
		for _, l := range all {
			s.enqueue(l)
		}
		s.mu.Unlock()
		s.ready(all[0])
		s.wg.Wait()
		if len(served) != lanes*units {
			t.Fatalf("%d units ran, want %d", len(served), lanes*units)
		}
		for i, lane := range served {
			if want := int32(i / each % lanes); lane != want {
				t.Fatalf("order of service %v: lanes do not take turns", served[:i+1])
			}
		}
	})
}

// The feeds of a lane are served in turn.
func TestWorkerPool_ServesFeedsInTurn(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var served []string
		s, all := pooled(t, OrderNone, 1, 1, func(u *unit) { served = append(served, u.feed.topic) })
		l := all[0]
		l.mu.Lock() // parking calls for workers
		for range 10 {
			l.source.ready.Push(&item{rec: &kgo.Record{}})
			parkDue(l, &kgo.Record{})
		}
		l.mu.Unlock()
		s.ready(l)
		s.wg.Wait()
		if len(served) != 20 {
			t.Fatalf("%d units ran, want 20", len(served))
		}
		for i := 1; i < len(served); i++ {
			if served[i] == served[i-1] {
				t.Fatalf("order of service %v: feeds do not take turns", served)
			}
		}
	})
}

// At most the limit of workers run, and all of them work.
func TestWorkerPool_UsesAsManyWorkersAsItsLimit(t *testing.T) {
	type row struct{ limit, most int }
	each(t, map[string]row{"one": {1, 1}, "some": {4, 4}, "unlimited": {0, 30}}, func(t *testing.T, tt row) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			now, most, ran := 0, 0, 0
			s, all := pooled(t, OrderNone, tt.limit, 3, func(*unit) {
				mu.Lock()
				now++
				ran++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
			})
			for _, l := range all {
				for range 10 {
					l.source.ready.Push(&item{rec: &kgo.Record{}})
				}
				l.Wake()
			}
			s.wg.Wait()
			if most != tt.most || ran != 30 {
				t.Errorf("at most %d workers for %d units, want %d for 30", most, ran, tt.most)
			}
			if s.running != 0 || s.contended() {
				t.Errorf("%d workers are counted after the work, contended %v", s.running, s.contended())
			}
		})
	})
}

// Under OrderPartition a partition has one worker at a time.
func TestWorkerPool_OneWorkerAPartition(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, both := map[*feed]bool{}, false
		s, all := pooled(t, OrderPartition, 0, 1, func(u *unit) {
			mu.Lock()
			if busy[u.feed] {
				t.Errorf("two workers on %s", u.feed.topic)
			}
			busy[u.feed] = true
			both = both || busy[feedAt(u.feed.lane, 0)] && busy[feedAt(u.feed.lane, 1)]
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy[u.feed] = false
			mu.Unlock()
			u.ran = len(u.recs)
		})
		l := all[0]
		for range 10 {
			l.mu.Lock()
			l.source.batches.Push(batch{recs: []*kgo.Record{{}}})
			parkDue(l, &kgo.Record{})
			l.mu.Unlock()
		}
		s.wg.Wait()
		if l.hasWork() {
			t.Error("work is left")
		}
		if !both {
			t.Error("the source and its tier never ran at the same time")
		}
	})
}
