package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// calm is the time without faults after each kind of them was injected once: floors have to move
// then. Runs of a few kinds have none.
const calm = 50 * time.Second

// plan is what a seed decides before a run.
type plan struct {
	services []trace.Service
	poisons  int // records that kill
	steps    []step
	// The first member of this service is no victim, so that its sizes can be watched; -1 for none.
	// The change of a tier then leaves a member with the tiers from before.
	spared int
}

// step is one fault.
type step struct {
	at    time.Duration // since the start
	fault string        // its name
	seed  uint64        // of whatever else is random about it
}

// newPlan is the same for the same seed, duration and faults. These are what the brokers allow.
func newPlan(cfg Config, faults []string) plan {
	rnd := rand.New(rand.NewPCG(cfg.Seed, 1))
	p := plan{poisons: max(cmp.Or(cfg.Poisons, 3), 0), spared: -1}
	if cfg.Seed%2 == 1 {
		p.poisons, p.spared = max(cfg.Poisons, 0), 1
	}
	orders := []consumer.Order{consumer.OrderPartition, consumer.OrderKey, consumer.OrderNone}
	first := rnd.IntN(len(orders))
	for i := range 2 {
		s := trace.Service{
			Group: fmt.Sprintf("chaos-%d-%d", cfg.Seed, i), Topics: []string{fmt.Sprintf("chaos-%d-%d-orders", cfg.Seed, i)},
			Partitions: 8 + 4*rnd.IntN(3), Order: orders[(first+i)%len(orders)], NextGen: (uint64(i)+cfg.Seed)%2 == 0, Members: 2,
			Concurrency: 8 * rnd.IntN(2), MaxInFlight: 200 * rnd.IntN(2), MaxParkedBytes: int64(128<<10) * rnd.Int64N(2),
			Policy: trace.Policy{
				Tiers:       tierSets[0],
				MaxAttempts: 4, HandlerTimeout: time.Second, InPlace: rnd.IntN(2),
				CommitInterval: time.Second, DrainTimeout: 5 * time.Second, Session: trace.Session,
			},
		}
		if !s.NextGen && cfg.Broker == BrokerEmbedded {
			// The embedded broker's sessions also end while a join waits for other members: then it
			// drops the join.
			s.Policy.Session = trace.RebalanceTimeout + time.Second
		}
		p.services = append(p.services, s)
	}
	p.schedule(cfg, rnd, faults)
	return p
}

// schedule plans when which faults are injected.
func (p *plan) schedule(cfg Config, rnd *rand.Rand, faults []string) {
	var kinds []string
	for _, name := range faults {
		if len(cfg.Only) == 0 || slices.Contains(cfg.Only, name) {
			kinds = append(kinds, name)
		}
	}
	if len(kinds) == 0 {
		return
	}
	// Some seeds have faults on top of each other.
	pause := []int{5000, 5000, 1500}[rnd.IntN(3)]
	// Each kind once before any comes twice, in an order of the seed's.
	var left []string
	for at := cfg.margin; at < cfg.Duration-cfg.margin; at += time.Duration(pause/3+rnd.IntN(pause)) * time.Millisecond {
		if len(left) == 0 {
			if len(p.steps) > 0 && len(kinds) > 5 {
				at += calm
				if at >= cfg.Duration-cfg.margin {
					break
				}
			}
			left = slices.Clone(kinds)
			rnd.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		p.steps = append(p.steps, step{at: at, fault: left[0], seed: rnd.Uint64()})
		left = left[1:]
	}
}

func (p plan) String() string {
	var b strings.Builder
	for _, s := range p.services {
		protocol := "classic"
		if s.NextGen {
			protocol = "KIP-848"
		}
		fmt.Fprintf(&b, "%s: %s, %s, %d partitions, %d members, tiers %v\n", s.Group, orderName(s.Order), protocol, s.Partitions, s.Members, s.Policy.Tiers)
	}
	fmt.Fprintf(&b, "%d records that kill, %d faults:", p.poisons, len(p.steps))
	for _, s := range p.steps {
		fmt.Fprintf(&b, " %v %s;", s.at, s.fault)
	}
	return strings.TrimSuffix(b.String(), ";")
}

func orderName(o consumer.Order) string {
	return [...]string{"OrderPartition", "OrderKey", "OrderNone"}[o]
}

// tierSets are the tiers between which configurations change.
var tierSets = [][]time.Duration{
	{500 * time.Millisecond, 2 * time.Second, 4 * time.Second},
	{500 * time.Millisecond, 4 * time.Second},
	{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second},
}

// everyTier has all delays that a service's tiers may ever have.
func everyTier() (all []time.Duration) {
	for _, tiers := range tierSets {
		all = append(all, tiers...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
