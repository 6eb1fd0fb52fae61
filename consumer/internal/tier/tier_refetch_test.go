package tier

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// A tier without room holds the first of the records that it has seen, whichever came first. None
// of them has to be fetched by itself because others, due later, were here already.
func TestTier_EvictsWhatIsDueLaterForWhatItFetches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		env := testEnv()
		f, l := newTier(t, env)
		p := env.Budget
		now := time.Now().UnixMilli()
		record := func(offset, due int64) *kgo.Record {
			m := headers.Meta{Group: "billing", NotBefore: time.UnixMilli(due)}
			return &kgo.Record{Offset: offset, Timestamp: time.UnixMilli(now), Headers: m.Append(nil)}
		}
		size := packedSize(packedLen(record(0, now)))
		holds := rapid.IntRange(1, 40).Draw(rt, "records that there is room for")
		p.limit = int64(holds) * size * 2 // of which it has half, once that much is in use
		p.bytes = p.limit / 2             // others'
		dues := rapid.SliceOfNDistinct(rapid.Int64Range(now+1, now+2*soon), holds, 100, rapid.ID).Draw(rt, "due")
		var got []*kgo.Record
		for i, due := range dues {
			if r := record(int64(i), due); i < holds {
				f.keep(pack(r, due))
			} else {
				f.evicted.add(r.Offset, due, size)
				got = append(got, r)
			}
		}
		l.Lock() // from its timer
		defer l.Unlock()
		// which it keeps: it would be fetched again at once
		before, next := p.bytes, f.parked[0].due
		f.restore(got, 0, int64(len(dues)), evictedBits)
		var held []int64
		for i := range f.parked {
			held = append(held, f.parked[i].due)
		}
		slices.Sort(held)
		slices.Sort(dues)
		isNext := func(due int64) bool { return due == next }
		if held, dues := slices.DeleteFunc(held, isNext), slices.DeleteFunc(dues, isNext); len(held) < holds-1 || !slices.Equal(held, dues[:len(held)]) {
			rt.Fatalf("%v are held, want the first %d of %v", held, holds-1, dues)
		}
		if p.bytes > before+size || f.evicted.n+f.inMemory != len(got)+holds {
			rt.Fatalf("%d bytes, %d evicted and %d kept; want %d and one record at most, %d in all", p.bytes, f.evicted.n, f.inMemory, before, len(got)+holds)
		}
	})
}

// siding writes to a tier as records fail, so that what lies together in the log is due together,
// but for the jitter. A record that was evicted is then fetched about once. Each tier read blocks
// ahead that it could not keep, and blocks of which it had kept a part. This is the bench of delays
// on a quarter of its partitions, in batches of some twenty records.
func TestTier_FetchesOnceWhatWasWrittenInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const records, rate, batch, size = 11_000, 312, 22, 394 // of each partition
		env := testEnv()
		env.MaxDue = 10_000
		env.Budget = NewBudget(16<<20, func([]Lane) {})
		go env.Budget.Run(t.Context())
		began, rnd := time.Now(), rand.New(rand.NewPCG(1, 1))
		one := packedSize(packedLen(simRecord(0, began, began, size)))
		var logs [4][]*kgo.Record
		var tiers [4]*Tier
		var lanes [4]*testLane
		var wire atomic.Int64 // with what lies in a batch below the offset that is asked for
		env.Fetch = func(_ context.Context, p Partition, from, bytes int64) (got []*kgo.Record, next int64, err error) {
			time.Sleep(3 * time.Millisecond)
			log, first := logs[p.Partition], from/batch*batch
			for next = first; next < records && (next == first || (next+batch-first)*one*115/100 <= bytes); {
				next = min(next+batch, records)
			}
			wire.Add((next - first) * one)
			return log[from:next], next, nil
		}
		for i := range tiers {
			tiers[i], lanes[i] = newTier(t, env)
			f := tiers[i]
			f.cfg.Partition, f.cfg.Delay = int32(i), time.Duration(90+30*(i%2))*time.Second
			f.cfg.Wait = f.cfg.Delay * 11 / 10
			for at := range int64(records) {
				failed := began.Add(15*time.Second - f.cfg.Delay + time.Duration(at)*time.Second/rate)
				due := failed.Add(f.cfg.Delay + time.Duration(rnd.Int64N(int64(f.cfg.Delay/10))))
				logs[i] = append(logs[i], simRecord(at, failed, due, size))
			}
		}
		for at := 0; at < records; at += 1000 { // the answers to the ordinary fetches
			for i, f := range tiers {
				lanes[i].Lock()
				for _, r := range logs[i][at:min(at+1000, records)] {
					f.tracker.Deliver(r.Offset)
					f.Admit(r, time.Now())
				}
				f.Promote()
				lanes[i].Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		}
		ran, late := 0, time.Duration(0)
		for time.Since(began) < 2*time.Minute {
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			for i, l := range lanes {
				for l.count() > 0 {
					l.work(tiers[i], func(r *kgo.Record) {
						ran++
						late = max(late, time.Since(time.UnixMilli(tiers[i].dueOf(r, time.Now(), time.Now()))))
					})
				}
			}
		}
		if ran != len(tiers)*records || late > time.Second {
			t.Errorf("%d of %d records ran, %v late", ran, len(tiers)*records, late)
		}
		evicted := float64(env.Budget.Evicted())
		if again, sent := float64(env.Budget.Refetched())/evicted, float64(wire.Load())/evicted; again > 1.1 || sent > 1.1 {
			t.Errorf("an evicted byte is fetched %.3f times, and sent %.3f times; want about once", again, sent)
		}
	})
}
