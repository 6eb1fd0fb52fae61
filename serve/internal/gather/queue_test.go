package gather

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Calls of one key that come while the first one waits are one call, and those of other keys and
// later ones are others.
func TestQueue_MakesOneCallOfThoseThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q Queue[int, int]
		var calls [][]int
		var mu sync.Mutex
		var all sync.WaitGroup
		do := func(key string, item, want int) {
			all.Go(func() {
				got, n, err := q.Do(t.Context(), key, item, func() { time.Sleep(time.Second) }, func(items []int) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					calls = append(calls, items)
					return 10 * len(items), errors.ErrUnsupported
				})
				if got != 10*want || n != want || !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s %d: %d of %d, %v; want %d", key, item, got, n, err, want)
				}
			})
		}
		for i := range 3 {
			do("a", i, 3)
		}
		do("b", 9, 1)
		gone, cancel := context.WithCancelCause(t.Context())
		synctest.Wait()
		cancel(errors.ErrUnsupported)
		time.Sleep(2 * time.Second)
		do("a", 3, 1)
		all.Wait()
		slices.SortFunc(calls, func(a, b []int) int { return len(b) - len(a) })
		if len(calls) != 3 || len(calls[0]) != 3 {
			t.Errorf("the calls are %v", calls)
		}
		all.Go(func() {
			_, _, _ = q.Do(t.Context(), "c", 1, func() { time.Sleep(time.Second) }, func([]int) (int, error) { return 0, nil })
		})
		synctest.Wait()
		if _, n, err := q.Do(gone, "c", 2, nil, nil); n != 0 || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a caller that has gone: %d, %v", n, err)
		}
		all.Wait()
	})
}
