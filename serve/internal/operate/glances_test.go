package operate

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/selection"
)

// What lists showed is kept within a bound, what is asked for again longer, and a topic that was
// recreated has no letters of the former one.
func TestGlances_KeepWithinABound(t *testing.T) {
	t.Parallel()
	g := newGlances()
	asked := glanceAt{topic: "bills.dlq"}
	g.put(asked, Glance{Attempts: 7})
	for i := range int64(3 * mostGlances) {
		if is, ok := g.get(asked); !ok || is.Attempts != 7 {
			t.Fatalf("after %d others, what is asked for again and again is %+v, %v", i, is, ok)
		}
		at := glanceAt{"orders.dlq", selection.Place{Offset: i}, 7}
		g.put(at, Glance{Attempts: int(i)})
		if is, ok := g.get(at); !ok || is.Attempts != int(i) {
			t.Fatalf("letter %d is %+v, %v", i, is, ok)
		}
		if n := len(g.of) + len(g.before); n > 2*mostGlances {
			t.Fatalf("%d are kept after %d", n, i+1)
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
