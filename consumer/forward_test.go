package consumer

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The forwards of a lane were within its share of MaxInFlightBytes when they were sent, and over it when a second lane was
// assigned. The lane was passed over then without a note of it, so that the acknowledgement that made room woke nobody.
func TestALaneWhoseShareShrankWakesWhenThereIsRoomAgain(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	c := idle(t, Config{MaxInFlightBytes: 1 << 20}, func() { ran.Add(1) })
	l := held(c, 0, "m")
	fw := &forward{feed: l.source(), size: 700 << 10}
	l.mu.Lock()
	l.forwards.outstanding, l.forwards.bytes = 1, fw.size
	l.updateHold()
	l.mu.Unlock()
	held(c, 1, "m") // halves the share
	l.source().offerSource([]*kgo.Record{{Topic: "orders"}})
	c.workers.Wait()
	if n := ran.Load(); n != 0 {
		t.Fatalf("%d records ran over the lane's share", n)
	}
	l.arrived(fw, nil)
	c.workers.Wait()
	if n := ran.Load(); n != 1 {
		t.Errorf("%d records ran, want 1: there is room again", n)
	}
}

// The forward path is hot where everything fails.
func TestWithoutHooksACopyCostsNothingMore(t *testing.T) { // not parallel: it counts allocations
	c := idle(t, Config{}, func() {})
	l := held(c, 0, "m")
	fw := &forward{feed: l.source()}
	r := &kgo.Record{Topic: "orders.dlq"}
	for _, topic := range []string{"orders.dlq", "orders.retry.5s"} {
		r.Topic = topic
		if n := testing.AllocsPerRun(100, func() { l.copied(fw, r) }); n != 0 {
			t.Errorf("a copy on %s costs %v allocations for hooks that are not there", topic, n)
		}
	}
}

func TestACopyFinishesItsRecordOnlyWhenItIsSafe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		draining bool
		answer   error
		floor    int64
	}{
		"acknowledged":                {answer: nil, floor: 2},
		"acknowledged while draining": {draining: true, answer: nil, floor: 2},
		"refused":                     {answer: kerr.TopicAuthorizationFailed, floor: 0},
		"refused while draining":      {draining: true, answer: kerr.TopicAuthorizationFailed, floor: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := idle(t, Config{}, func() {})
			l := held(c, 0, "m")
			f := l.source()
			f.tracker.DeliverRange(0, 1)
			f.tracker.Finish(1)
			fw := &forward{feed: f, rec: kgo.Record{Topic: "orders.dlq"}}
			l.send(fw)
			if got := f.tracker.Floor(); got != 0 {
				t.Errorf("floor %d while the copy of 0 is on its way, want 0", got)
			}
			if tt.draining {
				l.mu.Lock()
				l.setState(laneDraining, "")
				l.mu.Unlock()
			}
			l.arrived(fw, tt.answer)
			if got := f.tracker.Floor(); got != tt.floor {
				t.Errorf("floor %d, want %d", got, tt.floor)
			}
			l.close()
		})
	}
}
