package letterindex

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// What tallies say of a selection is what its rows say, one by one: after rows came, changed their
// states and were dropped, with few kinds and with many.
func TestTally_SaysWhatItsRowsSay(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, many := range []int{1, 5, 2000} {
		b := New("orders.dlq", "orders.dlq.ledger")
		for i := range many {
			b.kinds.all = append(b.kinds.all, kindData{Kind: Kind{Class: string(rune('a' + i%20))}})
		}
		for id := range int32(3) {
			b.partitions[id] = &partition{}
		}
		at := int64(1_000_000)
		for range 30 {
			p := b.partitions[rnd.Int32N(3)]
			for range rnd.IntN(2 * chunkRows) {
				at += rnd.Int64N(3)
				is := row{offset: p.next, entered: at, failed: at - rnd.Int64N(1000), kind: rnd.Uint32N(uint32(many)), copied: rnd.IntN(9) == 0}
				p.add(&is)
				p.next++
			}
			for range rnd.IntN(50) {
				if p.n == 0 {
					break
				}
				chunk, i, _ := p.find(p.chunks[0].row(0).offset + rnd.Int64N(int64(p.n)))
				p.chunks[chunk].setState(i, uint8(rnd.IntN(len(states))))
				p.chunks[chunk].recount()
			}
			if rnd.IntN(4) == 0 {
				p.drop(rnd.Int64N(p.next + 1))
			}
			f := drawn(rnd, at)
			s := b.selects(&f)
			begin, length := rnd.Int64N(at), 1+rnd.Int64N(5000)
			splits := func(t *tally) bool { return (t.failed.first-begin)/length != (t.failed.last-begin)/length }
			want, got := map[int64]int64{}, map[int64]int64{} // by time and kind
			key := func(t *tally) int64 {
				return (t.failed.first-begin)/length<<20 | int64(t.kind)<<5 | int64(t.state)<<1 | map[bool]int64{true: 1}[t.copied]
			}
			var first, last int64
			for id, p := range b.partitions {
				for r := range p.all {
					if s.has(id, &r) {
						one := tallyOf(&r)
						want[key(&one)]++
						if first == 0 || r.entered < first {
							first = r.entered
						}
						last = max(last, r.entered)
					}
				}
			}
			b.visit(s, splits, func(t *tally) { got[key(t)] += t.n })
			if !maps.Equal(got, want) {
				t.Fatalf("%d kinds, %+v: tallies differ from rows", many, f)
			}
			var entered span
			b.visit(s, nil, func(t *tally) {
				if entered.first == 0 || t.entered.first < entered.first {
					entered.first = t.entered.first
				}
				entered.last = max(entered.last, t.entered.last)
			})
			if entered != (span{first, last}) {
				t.Fatalf("%d kinds, %+v: the times are %v, want %d and %d", many, f, entered, first, last)
			}
		}
	}
}

// drawn returns a filter.
func drawn(rnd *rand.Rand, most int64) (f dlq.Filter) {
	when := func() time.Time {
		if rnd.IntN(2) == 0 {
			return time.Time{}
		}
		return time.UnixMilli(rnd.Int64N(most))
	}
	f.Since, f.Until, f.EnteredSince, f.EnteredUntil = when(), when(), when(), when()
	if rnd.IntN(3) == 0 {
		f.Classes = []string{"a", "c"}
	}
	if rnd.IntN(3) == 0 {
		f.States = slices.Clone(states[rnd.IntN(len(states)):])
	}
	if rnd.IntN(4) == 0 {
		f.Ranges = []dlq.Range{{Partition: rnd.Int32N(3), From: rnd.Int64N(1000), Until: 1000 + rnd.Int64N(5000)}}
	}
	return f
}
