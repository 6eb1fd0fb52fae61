package operate

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/selection"
)

// What lists showed is kept within a bound, and a topic that was recreated has no letters of the
// former one.
func TestGlances_KeepWithinABound(t *testing.T) {
	t.Parallel()
	g := newGlances()
	for i := range int64(3 * mostGlances) {
		at := glanceAt{"orders.dlq", selection.Place{Offset: i}, 7}
		g.put(at, Glance{Attempts: int(i)})
		if is, ok := g.get(at); !ok || is.Attempts != int(i) {
			t.Fatalf("letter %d is %+v, %v", i, is, ok)
		}
		if len(g.of) > mostGlances {
			t.Fatalf("%d are kept after %d", len(g.of), i+1)
		}
	}
	last := glanceAt{"orders.dlq", selection.Place{Offset: 3*mostGlances - 1}, 8}
	if _, ok := g.get(last); ok {
		t.Error("a letter that was written at another time is the same")
	}
}

// After letters of a topic could not be read, lists do without for a while.
func TestGlances_RestAfterAFailure(t *testing.T) {
	t.Parallel()
	g, now := newGlances(), time.Now()
	g.rest("orders.dlq", now.Add(glanceRest))
	for _, test := range []struct {
		topic string
		after time.Duration
		rests bool
	}{{"bills.dlq", 0, false}, {"orders.dlq", glanceRest - 1, true}, {"orders.dlq", glanceRest, false}, {"orders.dlq", 0, false}} {
		if got := g.rests(test.topic, now.Add(test.after)); got != test.rests {
			t.Errorf("%s rests after %v: %v, want %v", test.topic, test.after, got, test.rests)
		}
	}
}
