package tier

import (
	"slices"
	"testing"
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
