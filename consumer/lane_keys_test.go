package consumer

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// Over all feeds of a lane, one record of each key runs at a time, in the order in which they
// became ready. All of them run.
func TestKeyQueue_RunsAllInOrderOneAtATime(t *testing.T) {
	t.Parallel()
	keys := [][]byte{nil, {}, []byte("a"), []byte("b"), []byte("c")}
	rapid.Check(t, func(t *rapid.T) {
		c := &Consumer{}
		c.cfg.Order = OrderKey
		l := withFeeds(&lane{c: c, topic: "orders", keys: map[keyHash]*keyQueue{}})
		source, tier := l.source, l.tiers()[0]
		var running []*unit
		waiting := map[string][]int64{} // offsets by key, in the order in which they became ready
		ran, n := 0, int64(0)

		ready := func() (all []func() *unit) {
			if source.ready.Len() > 0 {
				all = append(all, func() *unit { return source.cut() })
			}
			if tier.ready.Len() > 0 {
				all = append(all, func() *unit { return tier.cut() })
			}
			return all
		}
		take := func(t *rapid.T, cut func() *unit) {
			u := cut()
			key, offset := u.item.key(), int64(0)
			if u.tier != nil {
				offset = tier.parked.Unpack(u.item.parked).Offset
			} else {
				offset = u.item.rec.Offset
			}
			if key == nil {
				if u.key != 0 {
					t.Fatal("a null key holds a queue")
				}
			} else {
				for _, r := range running {
					if k := r.item.key(); k != nil && string(k) == string(key) {
						t.Fatalf("two records of key %q run", key)
					}
				}
				want := waiting[string(key)]
				if offset != want[0] {
					t.Fatalf("record %d of key %q runs before %d", offset, key, want[0])
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
				r := &kgo.Record{Key: key, Offset: n}
				if rapid.Bool().Draw(t, "of the tier") {
					parkDue(l, r)
				} else {
					l.enqueue(&source.feed, &item{rec: r})
				}
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
			for _, cut := range ready() {
				take(t, cut)
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

// A hold begins while a lane claims keys for redriven records that waited for the end of the last
// one. The lane went round for ever, since the hold brought them back.
func TestLaneKeys_ClaimEndsAsAHoldBegins(t *testing.T) {
	t.Parallel()
	for range 10 {
		_, lanes := pooled(t, OrderKey, 2, 1, nil)
		l := lanes[0]
		p := Policy{}.withDefaults()
		var now atomic.Int64
		now.Store(int64(time.Hour))
		l.guard = guard.NewTopic(&guard.Env{
			Elapsed: func() time.Duration { return time.Duration(now.Load()) },
			Lanes:   func() []guard.Lane { return nil },
			Ended:   func() bool { return true },
			Note:    func(guard.Event) {},
		}, p.guardSettings())
		l.keys = map[keyHash]*keyQueue{}
		f := l.tiers()[0]
		const n = 2000
		for i := range n {
			f.unclaimedFirst.Push(&item{fresh: true, parked: nil, rec: &kgo.Record{Offset: int64(i), Key: fmt.Append(nil, i%50)}})
		}
		for range 11 { // an outage, just before it is held
			for range 10 {
				l.guard.Ran(now.Load(), guard.Failed, 1, nil)
			}
			now.Add(int64(600 * time.Millisecond))
		}
		if l.guard.Holds() {
			t.Fatal("held already")
		}
		start := make(chan struct{})
		go func() {
			<-start
			for i := 0; i < 5000 && !l.guard.Holds(); i++ {
				l.guard.Ran(now.Load(), guard.Failed, 1, nil)
			}
		}()
		done := make(chan struct{})
		go func() {
			l.mu.Lock()
			close(start)
			l.claimRetries()
			l.mu.Unlock()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("claimRetries does not return: %d records wait for the hold's end, and %d have their keys", f.unclaimedFirst.Len(), f.first.Len())
		}
	}
}
