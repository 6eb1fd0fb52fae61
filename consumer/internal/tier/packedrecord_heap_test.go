package tier

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDueHeap_GivesRecordsByDueTimeThenOffset(t *testing.T) {
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
