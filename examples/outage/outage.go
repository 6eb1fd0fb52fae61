// Package outage counts an incident: what a service depends on is down for ten minutes, and each
// call of the handler fails. It runs the incident with siding's breaker and retry budget and
// without them, in virtual time on a broker inside the process:
//
//	go test ./examples/outage -v
//
// docs/policies.md says what the breaker does.
package outage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// The incident: a topic with an order each second, and a gateway that is down for ten minutes.
const (
	topic  = "orders"
	orders = 600
	// No delay of the policy is a multiple of it: otherwise copies fall due as orders come, chance
	// says which of the two runs first, and the numbers are not the same each time.
	between = 1001 * time.Millisecond
)

// gateway is what the handler calls. While it is down, it refuses connections.
type gateway struct {
	mu        sync.Mutex
	down      bool
	calls     int // while it is down
	charged   int
	chargedAt time.Time // the last one
}

func (g *gateway) set(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// charge is the handler. A refused connection is worth another attempt.
func (g *gateway) charge(context.Context, *kgo.Record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		g.calls++
		return classify.As(classify.Retryable(errors.New("connection refused")), "gateway.refused")
	}
	g.charged++
	g.chargedAt = time.Now()
	return nil
}

// configure returns the consumer's configuration. The default policy has a breaker.
func configure(g *gateway, withoutBreaker bool, c *copies) consumer.Config {
	return consumer.Config{
		Group: "billing", Topics: []string{topic}, Handler: g.charge,
		Policy: consumer.Policy{Breaker: consumer.Breaker{Off: withoutBreaker}, RetryBudget: consumer.RetryBudget{Off: withoutBreaker}},
		Hooks:  []consumer.Hook{c},
	}
}

// copies counts what the consumer writes to retry topics and to the dead-letter topic.
type copies struct {
	mu           sync.Mutex
	parked, dead int
}

// OnParked counts a copy on a retry topic.
func (c *copies) OnParked(consumer.Routed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked++
}

// OnDeadLettered counts a dead letter.
func (c *copies) OnDeadLettered(consumer.Routed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead++
}

// counts are the numbers of one incident.
type counts struct {
	breaker             string
	calls, parked, dead int
	handled             string // when the last record was, after the end of the outage
}

// table prints the incidents as a table.
func table(all ...counts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| breaker | calls while it is down | copies in retry topics | dead letters of %d | all handled |\n|---|---|---|---|---|\n", orders)
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s |\n", c.breaker, c.calls, c.parked, c.dead, c.handled)
	}
	return b.String()
}
