package operate

import (
	"slices"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/request"
)

func TestNewest_KeepsWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	odd := func(n *int) bool { return *n%2 == 1 } // have ended
	for limit, want := range map[int][]int{0: {9, 8, 7, 5, 4, 3, 1}, 1: {9, 8, 4}, 3: {9, 8, 7, 4}, 7: {9, 8, 7, 5, 4, 3, 1}, 100: {9, 8, 7, 5, 4, 3, 1}} {
		if got := newest([]int{9, 8, 7, 5, 4, 3, 1}, request.Newest{Limit: limit}, odd); !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
}
