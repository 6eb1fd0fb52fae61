package offsets

import (
	"slices"
	"testing"
)

// Evidence has the union of what several commits said: a span within another must not cut it.
func TestUnion_KeepsAllOfBoth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want []Span }{
		{[]Span{{1, 9}}, []Span{{3, 4}}, []Span{{1, 9}}},
		{[]Span{{1, 3}, {7, 8}}, []Span{{3, 5}}, []Span{{1, 5}, {7, 8}}},
		{[]Span{{5, 6}}, []Span{{1, 4}, {8, 8}}, []Span{{1, 6}, {8, 8}}},
		{nil, nil, nil},
	} {
		if got := Union(c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("the union of %v and %v is %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// Metadata counts from the floor: a span that begins below it could not be written.
func TestAbove_CutsAtTheFloor(t *testing.T) {
	t.Parallel()
	if got, want := Above([]Span{{1, 3}, {5, 9}, {11, 12}}, 7), []Span{{7, 9}, {11, 12}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
