package consumer

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

func TestTheParkedHeapGivesRecordsByDueTimeThenOffset(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h dueHeap
		var model []packedRecord
		order := func(a, b packedRecord) int {
			return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.offset, b.offset))
		}
		offset := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					offset++
					it := packedRecord{offset: offset, due: rapid.Int64Range(0, 20).Draw(t, "due")}
					h.push(it)
					model = append(model, it)
				}
				slices.SortFunc(model, order)
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(0, len(model)).Draw(t, "n") {
					if got := h.pop(); order(got, model[0]) != 0 {
						t.Fatalf("popped due %d, offset %d; want %d, %d", got.due, got.offset, model[0].due, model[0].offset)
					}
					model = model[1:]
				}
			},
			"": func(t *rapid.T) {
				if len(h) != len(model) || len(h) > 0 && order(h[0], model[0]) != 0 {
					t.Fatalf("heap holds %d with another head than the model, which holds %d", len(h), len(model))
				}
			},
		})
	})
}

// One record at a time per key over all feeds of the lane, in the order in which they became ready, and all of them run.
func TestKeysRunOneAtATimeInOrderAndAllOfThem(t *testing.T) {
	t.Parallel()
	keys := [][]byte{nil, {}, []byte("a"), []byte("b"), []byte("c")}
	rapid.Check(t, func(t *rapid.T) {
		c := &Consumer{tierBudget: newTierBudget(1<<20, nil, nil)}
		c.cfg.Order = OrderKey
		l := &lane{c: c, keys: map[keyHash]*keyQueue{}}
		l.feeds = []*feed{{lane: l, topic: "orders"}, {lane: l, topic: "orders.retry.5s", delay: 1}}
		var running []*unit
		waiting := map[string][]int64{} // offsets by key, in the order in which they became ready
		ran, n := 0, int64(0)

		ready := func() (all []*feed) {
			for _, f := range l.feeds {
				if f.ready.Len() > 0 {
					all = append(all, f)
				}
			}
			return all
		}
		take := func(t *rapid.T, f *feed) {
			u := f.cut()
			key := u.item.rec.Key
			if key == nil {
				if u.key != 0 {
					t.Fatal("a null key holds a queue")
				}
			} else {
				for _, r := range running {
					if r.item.rec.Key != nil && string(r.item.rec.Key) == string(key) {
						t.Fatalf("two records of key %q run", key)
					}
				}
				want := waiting[string(key)]
				if u.item.rec.Offset != want[0] {
					t.Fatalf("record %d of key %q runs before %d", u.item.rec.Offset, key, want[0])
				}
				waiting[string(key)] = want[1:]
			}
			running = append(running, u)
		}
		release := func(i int) {
			u := running[i]
			running = slices.Delete(running, i, i+1)
			if u.key != 0 {
				l.releaseKey(u.key)
			}
			ran++
		}
		t.Repeat(map[string]func(*rapid.T){
			"a record becomes ready": func(t *rapid.T) {
				n++
				key := rapid.SampledFrom(keys).Draw(t, "key")
				if key != nil {
					waiting[string(key)] = append(waiting[string(key)], n)
				}
				l.enqueue(rapid.SampledFrom(l.feeds).Draw(t, "feed"), &item{rec: &kgo.Record{Key: key, Offset: n}})
			},
			"a worker takes one": func(t *rapid.T) {
				if all := ready(); len(all) > 0 {
					take(t, rapid.SampledFrom(all).Draw(t, "feed"))
				}
			},
			"one has run": func(t *rapid.T) {
				if len(running) > 0 {
					release(rapid.IntRange(0, len(running)-1).Draw(t, "which"))
				}
			},
		})
		for len(running) > 0 || len(ready()) > 0 {
			for _, f := range ready() {
				take(t, f)
			}
			for len(running) > 0 {
				release(0)
			}
		}
		if ran != int(n) || len(l.keys) != 0 {
			t.Fatalf("%d of %d records ran, %d keys are kept", ran, n, len(l.keys))
		}
	})
}

// pooled makes a pool of workers over running lanes, without Kafka.
func pooled(t *testing.T, order Order, limit, lanes int, run func(*unit)) (*workerPool, []*lane) {
	t.Helper()
	c := &Consumer{lanes: map[topicPartition]*lane{}, tierBudget: newTierBudget(1<<20, nil, nil)}
	c.cfg.Order, c.cfg.MaxInFlight, c.cfg.MaxInFlightBytes = order, 1000, 1<<20
	c.paused.Store(&map[string]bool{})
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	c.clock = clock.New(&c.wg, done, func() {})
	c.workerPool = &workerPool{limit: limit, wg: &c.workers, run: run, clock: c.clock}
	var all []*lane
	for p := range lanes {
		l := &lane{c: c, topic: "orders", partition: int32(p), state: laneRunning, units: map[*unit]struct{}{}, changed: make(chan struct{}, 1)}
		l.feeds = []*feed{{lane: l, topic: "orders"}, {lane: l, topic: "orders.retry.5s", delay: 5 * time.Second}}
		all = append(all, l)
	}
	return c.workerPool, all
}

func TestLanesAreServedInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lanes, units = 5, 20
		var served []int32
		s, all := pooled(t, OrderPartition, 1, lanes, func(u *unit) {
			served = append(served, u.feed.lane.partition)
			u.ran = len(u.recs)
		})
		for _, l := range all {
			for range units {
				l.feeds[0].batches.Push(batch{recs: []*kgo.Record{{}}})
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
		for i := lanes; i < len(served); i++ {
			if served[i] != served[i-lanes] {
				t.Fatalf("order of service %v: lanes do not take turns", served[:i+1])
			}
		}
	})
}

func TestFeedsOfALaneAreServedInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var served []string
		s, all := pooled(t, OrderNone, 1, 1, func(u *unit) { served = append(served, u.feed.topic) })
		l := all[0]
		for range 10 {
			for _, f := range l.feeds {
				f.ready.Push(&item{rec: &kgo.Record{}})
			}
		}
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

func TestNoMoreWorkersThanTheLimitAndAllOfThemAreUsed(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 4, 0} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now, most, ran := 0, 0, 0
				s, all := pooled(t, OrderNone, limit, 3, func(*unit) {
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
						l.feeds[0].ready.Push(&item{rec: &kgo.Record{}})
					}
					l.wake()
				}
				s.wg.Wait()
				if want := map[int]int{1: 1, 4: 4, 0: 30}[limit]; most != want || ran != 30 {
					t.Errorf("at most %d workers for %d units, want %d for 30", most, ran, want)
				}
				if s.running != 0 || s.contended() {
					t.Errorf("%d workers are counted after the work, contended %v", s.running, s.contended())
				}
			})
		})
	}
}

func TestByPartitionAPartitionHasOneWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, both := map[*feed]bool{}, false
		s, all := pooled(t, OrderPartition, 0, 1, func(u *unit) {
			mu.Lock()
			if busy[u.feed] {
				t.Errorf("two workers on %s", u.feed.topic)
			}
			busy[u.feed] = true
			both = both || busy[u.feed.lane.feeds[0]] && busy[u.feed.lane.feeds[1]]
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy[u.feed] = false
			mu.Unlock()
			u.ran = len(u.recs)
		})
		l := all[0]
		for range 10 {
			l.feeds[0].batches.Push(batch{recs: []*kgo.Record{{}}})
			l.feeds[1].ready.Push(&item{rec: &kgo.Record{}})
			l.wake()
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

func TestWhatDidNotRunOfAUnitGoesToTheFront(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var served []int64
		s, all := pooled(t, OrderPartition, 1, 1, func(u *unit) {
			served = append(served, u.recs[0].Offset)
			u.ran = 1
		})
		l := all[0]
		for first := int64(0); first < 30; first += 10 {
			var recs []*kgo.Record
			for at := range int64(10) {
				recs = append(recs, &kgo.Record{Offset: first + at})
			}
			l.feeds[0].batches.Push(batch{recs: recs, each: 1})
			l.feeds[0].enter(10, 10)
		}
		l.wake()
		s.wg.Wait()
		if len(served) != 30 || !slices.IsSorted(served) {
			t.Errorf("served %v, want 0 … 29 in order", served)
		}
		if f := l.feeds[0]; f.queued != 0 {
			t.Errorf("%d records are counted as queued after all ran", f.queued)
		}
	})
}
