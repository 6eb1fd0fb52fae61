package console

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// However often a form is sent at once, it is carried out once; one that failed may be sent again.
func TestMemory_CarriesOutOnce(t *testing.T) {
	t.Parallel()
	var m memory
	var done atomic.Int64
	now := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := m.once("a", now, func() error { done.Add(1); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if done.Load() != 1 {
		t.Errorf("it was done %d times", done.Load())
	}
	no := errors.New("no")
	for range 2 {
		if err := m.once("b", now, func() error { done.Add(1); return no }); !errors.Is(err, no) {
			t.Errorf("%v", err)
		}
	}
	if done.Load() != 3 {
		t.Errorf("a form that failed was done %d times", done.Load()-1)
	}
}
