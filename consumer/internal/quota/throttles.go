// Package quota keeps which brokers throttle the process, since it exceeds a quota. Their answers
// say so, and kgo waits as long before it sends the next request. Nothing is wrong then but the
// pace.
package quota

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lingers is how long a throttle counts beyond its end: a client that is throttled again and again
// has answers in between.
const lingers = 10 * time.Second

// Throttles are the throttles of all clients of a process, which have it as a hook. The zero value
// has none. It is safe for concurrent use; its lock is a leaf.
type Throttles struct {
	mu       sync.Mutex
	byBroker map[int32]throttle
}

type throttle struct {
	since, until time.Time
	wait         time.Duration // the last one
}

// OnBrokerThrottle implements kgo.HookBrokerThrottle.
func (t *Throttles) OnBrokerThrottle(broker kgo.BrokerMetadata, wait time.Duration, _ bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byBroker == nil {
		t.byBroker = map[int32]throttle{}
	}
	is := t.byBroker[broker.NodeID]
	if now.Sub(is.until) > lingers {
		is.since = now
	}
	is.until, is.wait = now.Add(wait), wait
	t.byBroker[broker.NodeID] = is
}

// Now returns for how long a broker throttles the process at most, and why a client has to wait;
// zero and empty if none does.
func (t *Throttles) Now(now time.Time) (wait time.Duration, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	type named struct {
		broker int32
		throttle
	}
	var all []named
	for broker, is := range t.byBroker {
		if now.Sub(is.until) > lingers {
			delete(t.byBroker, broker)
			continue
		}
		all = append(all, named{broker, is})
	}
	if len(all) == 0 {
		return 0, ""
	}
	longest := slices.MaxFunc(all, func(a, b named) int { return cmp.Or(cmp.Compare(a.wait, b.wait), cmp.Compare(b.broker, a.broker)) })
	return longest.wait, fmt.Sprintf("broker %d throttles this process since %s, by %v at last: raise the quota of its user or client id (producer_byte_rate, consumer_byte_rate, request_percentage)",
		longest.broker, longest.since.UTC().Format(time.RFC3339), longest.wait)
}
