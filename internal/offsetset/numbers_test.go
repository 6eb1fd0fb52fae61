package offsetset

import (
	"testing"

	"pgregory.net/rapid"
)

// A map of offsets is the model.
func TestNumbers_AreWhatWasSetLast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var n Numbers
		want := map[int64]uint32{}
		offsets := rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64Range(blockSize-20, blockSize+20), rapid.Int64Range(5*blockSize-3, 5*blockSize+3))
		for range rapid.IntRange(1, 200).Draw(t, "times") {
			offset, number := offsets.Draw(t, "offset"), rapid.Uint32Range(0, 3).Draw(t, "number")
			n.Set(offset, number)
			want[offset] = number
		}
		for offset, number := range want {
			if got := n.Of(offset); got != number {
				t.Fatalf("the number of %d is %d, want %d", offset, got, number)
			}
		}
	})
}

// Dozens of entries of a redrive run have the same second.
func TestNumbers_OfNeighborsThatAreTheSameTakeNoRoom(t *testing.T) {
	t.Parallel()
	var n Numbers
	for offset := range int64(3 * blockSize) {
		n.Set(offset*2, uint32(offset/blockSize))
	}
	room := 0
	for _, b := range n.blocks {
		room += len(b.from)
	}
	if room != len(n.blocks) {
		t.Errorf("%d blocks have %d numbers, want one each", len(n.blocks), room)
	}
	n.Set(7, 9)
	n.Set(7, 0) // as before
	if got := len(n.blocks[0].from); got != 1 {
		t.Errorf("a number that was changed back leaves %d, want 1", got)
	}
}
