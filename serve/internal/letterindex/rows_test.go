package letterindex

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Packed rows are what was added, whatever their offsets, times and kinds: like a plain list.
func TestRows_AreWhatWasAdded(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	jumps := []int64{1, 1, 1, 2, 50, math.MaxUint32, math.MaxUint32 + 1}
	times := []int64{0, 1, -1, 1000, math.MaxInt32, -math.MaxInt32, math.MaxInt32 + 1, -math.MaxInt32 - 1}
	for range 10 {
		var rs rows
		var list []row
		offset, entered := rnd.Int64N(1000), int64(1.7e12)
		check := func(what string) {
			t.Helper()
			if rs.n != len(list) {
				t.Fatalf("%s: %d rows, want %d", what, rs.n, len(list))
			}
			at := rnd.Int64N(offset + 2)
			first := slices.IndexFunc(list, func(r row) bool { return r.offset >= at })
			if first < 0 {
				first = len(list)
			}
			backwards := slices.Clone(list[:first])
			slices.Reverse(backwards)
			for _, of := range []struct {
				name string
				got  []row
				want []row
			}{
				{"all", slices.Collect(rs.all), list},
				{"from", slices.Collect(rs.from(at)), list[first:]},
				{"before", slices.Collect(rs.before(at, nil)), backwards},
			} {
				if !slices.Equal(of.got, of.want) {
					t.Fatalf("%s: %s %d has %d rows, want %d, or others", what, of.name, at, len(of.got), len(of.want))
				}
			}
			chunk, i, found := rs.find(at)
			if want := first < len(list) && list[first].offset == at; found != want || found && rs.chunks[chunk].row(i) != list[first] {
				t.Fatalf("%s: find %d: %v, want %v", what, at, found, want)
			}
		}
		for range rnd.IntN(4 * chunkRows) {
			is := row{
				offset: offset, entered: entered, failed: rnd.Int64N(mostFailed + 1), kind: rnd.Uint32N(mostReasons + 1),
				state: uint8(rnd.IntN(len(states))), copied: rnd.IntN(2) == 0,
			}
			rs.add(&is)
			list = append(list, is)
			offset += jumps[rnd.IntN(len(jumps)-2*rnd.IntN(2))]
			entered += times[rnd.IntN(len(times)-4*rnd.IntN(2))]
		}
		check("added")
		for range 20 {
			if len(list) == 0 {
				break
			}
			n := rnd.IntN(len(list))
			chunk, i, _ := rs.find(list[n].offset)
			list[n].state = uint8(rnd.IntN(len(states)))
			rs.chunks[chunk].setState(i, list[n].state)
		}
		check("changed")
		if n := rnd.IntN(len(list) + 1); n < len(list) {
			if cut := rs.cut(list[n].offset); cut != len(list)-n {
				t.Fatalf("%d rows were cut off, want %d", cut, len(list)-n)
			}
			list = list[:n]
			check("cut off")
		}
		for len(list) > 0 {
			n := rnd.IntN(len(list)) + 1
			at := list[n-1].offset + 1
			if dropped := rs.drop(at); dropped != n {
				t.Fatalf("%d rows were dropped, want %d", dropped, n)
			}
			list = list[n:]
			check("dropped")
		}
	}
}

// Times that a record cannot have are as near as a row can hold.
func TestRows_TimesBeyondTheirs(t *testing.T) {
	t.Parallel()
	var rs rows
	for i, failed := range []int64{math.MinInt64, -1, math.MaxInt64} {
		rs.add(&row{offset: int64(i), failed: failed})
	}
	if got := slices.Collect(rs.all); got[0].failed != 0 || got[1].failed != 0 || got[2].failed != mostFailed {
		t.Errorf("the rows are %+v", got)
	}
}
