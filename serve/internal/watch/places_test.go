package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// More topics are silent than are read beside the places. Those that are left keep the places until
// one of the others ends: no more than that are read at once.
func TestReadPlaces_BoundSilentTopics(t *testing.T) {
	t.Parallel()
	for isSmall, atOnce := range map[bool]int64{false: readsAtOnce, true: smallAtOnce} {
		synctest.Test(t, func(t *testing.T) {
			p := newReadPlaces()
			var reading atomic.Int64
			end := make(chan error)
			none := func() uint64 { return 0 }
			ended := make(chan error)
			all := 2 * (readsBeside + atOnce)
			for range all {
				go func() {
					ended <- p.read(t.Context(), isSmall, false, none, func(...kgo.Opt) error {
						reading.Add(1)
						defer reading.Add(-1)
						return <-end
					})
				}()
			}
			most := readsBeside + atOnce
			time.Sleep(time.Duration(all) * silentFor)
			if n := reading.Load(); n != most {
				t.Errorf("%d are read at once, want %d", n, most)
			}
			failed := errors.New("silent")
			for range all {
				end <- failed
				if err := <-ended; !errors.Is(err, failed) {
					t.Errorf("read returned %v", err)
				}
				time.Sleep(2 * silentFor)
				if n := reading.Load(); n > most {
					t.Errorf("%d are read at once", n)
				}
			}
			if len(p.small)+len(p.large)+len(p.again)+len(p.beside) > 0 {
				t.Errorf("places are held for no reader: %d, %d, %d and %d", len(p.small), len(p.large), len(p.again), len(p.beside))
			}
		})
	}
}

// A server ends while a topic waits for a place.
func TestReadPlaces_EndWithTheServer(t *testing.T) {
	t.Parallel()
	p := newReadPlaces()
	p.again <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.read(ctx, false, true, func() uint64 { return 0 }, func(...kgo.Opt) error {
		t.Error("it is read")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("read returned %v", err)
	}
}
