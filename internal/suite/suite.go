// Package suite holds siding's promises as tests that run on every broker: the embedded one in
// virtual time, and real Kafka with each group protocol.
package suite

import (
	"maps"
	"slices"
	"testing"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Broker runs one test on a broker of its kind.
type Broker func(t *testing.T, f func(*testing.T, *consumertest.Kafka))

// areas are the promises, by what they are about.
var areas = map[string]map[string]func(*testing.T, *fixture){
	"path": path, "order": order, "policy": policy, "bad": bad, "sharing": sharing, "size": size, "start": start, "restart": restart,
	"rebalance": rebalance, "topology": topology, "log": log, "secrecy": secrecy, "letters": letters, "outage": outage,
}

// Areas returns the names of all areas, sorted.
func Areas() []string { return slices.Sorted(maps.Keys(areas)) }

// Run runs the promises of some areas on the broker, or every promise if it is given none.
func Run(t *testing.T, on Broker, some ...string) {
	if len(some) == 0 {
		some = Areas()
	}
	for _, name := range some {
		tests, ok := areas[name]
		if !ok {
			t.Fatalf("the suite has no area %q: it has %q", name, Areas())
		}
		for promise, f := range tests {
			t.Run(name+"/"+promise, func(t *testing.T) {
				t.Parallel()
				on(t, func(t *testing.T, k *consumertest.Kafka) { f(t, newFixture(t, k)) })
			})
		}
	}
}
