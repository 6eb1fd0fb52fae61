package redrive

import (
	"fmt"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// A broker with another message each time must not fill the memory.
func TestThrottle_ForgetsMessages(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	run := &ownedRun{topics: &topics{dlq: "orders.dlq"}, rec: &record{ID: "r"}, load: newLoad(1)}
	e := &engine{
		ownedRun: run, flights: inflight.New(inflight.Counts{}, nil, nil),
		sender: &sender{run: run, bucket: newBucket(1, 1, time.Now())}, on: func(e Event) { counts[e.Message]++ },
	}
	for i := range 3 * maxLogged {
		e.logThrottled(fmt.Sprint(i))
		e.logThrottled(fmt.Sprint(i))
	}
	if len(e.throttle.logged) > maxLogged {
		t.Errorf("%d messages are kept", len(e.throttle.logged))
	}
	if len(counts) != 3*maxLogged || counts["7"] != 1 {
		t.Errorf("%d messages came, want %d; one of them %d times", len(counts), 3*maxLogged, counts["7"])
	}
}
