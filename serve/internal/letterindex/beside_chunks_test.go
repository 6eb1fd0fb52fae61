package letterindex

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sidingkafka/siding/dlq"
)

// What tallies let pass over is never the nearest letter, also where hosts' clocks differ.
func TestBeside_PassesOverNoLetter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	b := New("orders.dlq", "")
	b.kinds.all = []kindData{{Kind: Kind{Class: "a"}}, {Kind: Kind{Class: "b"}}}
	var all []candidate
	for id := range int32(2) {
		p := &partition{}
		b.partitions[id] = p
		for n := range int64(3 * chunkRows) {
			r := row{offset: n, entered: 1_000_000 + n/2 + random.Int64N(3000), kind: uint32(random.IntN(2)), state: uint8(random.IntN(2))}
			p.add(&r)
			if r.kind == 1 && r.state == 0 {
				all = append(all, candidate{id, r})
			}
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return b.compare(&a) })
	f := dlq.Filter{Classes: []string{"b"}}
	for range 300 {
		i := 1 + random.IntN(len(all)-2)
		before, after := Beside(b, &f, false, all[i].partition, all[i].row.offset)
		if before == nil || before.Partition != all[i-1].partition || before.Offset != all[i-1].row.offset || after == nil || after.Partition != all[i+1].partition || after.Offset != all[i+1].row.offset {
			t.Fatalf("beside %+v are %+v and %+v, want %+v and %+v", all[i], before, after, all[i-1], all[i+1])
		}
	}
}
