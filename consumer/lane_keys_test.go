package consumer

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// One record at a time per key over all feeds of the lane, in the order in which they became ready,
// and all of them run.
func TestKeyQueue_RunsAllInOrderOneAtATime(t *testing.T) {
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
