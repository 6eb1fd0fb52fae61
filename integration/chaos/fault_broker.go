package chaos

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// takeNode takes one of the brokers away, and brings it back.
func takeNode(away, back func(brokers.Cluster, int) error, most time.Duration) func(*execution, *rand.Rand) {
	return func(e *execution, rnd *rand.Rand) {
		node := rnd.IntN(brokers.Nodes)
		e.nodes.Lock() // one at a time: a quorum has to be left
		defer e.nodes.Unlock()
		e.try(away(e.brokers, node))
		e.rest(rnd, 2*time.Second, most)
		e.try(back(e.brokers, node))
	}
}

// freeze keeps a broker's connections open and lets nothing pass, or ends that.
func freeze(on bool) func(brokers.Cluster, int) error {
	return func(c brokers.Cluster, node int) error { return c.Freeze(node, on) }
}

// order makes the brokers do something once.
func order(do func(brokers.Cluster) error) func(*execution, *rand.Rand) {
	return func(e *execution, _ *rand.Rand) { e.try(do(e.brokers)) }
}

// restartBrokers ends all brokers, and starts them on their data.
func restartBrokers(e *execution, rnd *rand.Rand) {
	e.transactions.Lock()
	defer e.transactions.Unlock()
	e.nodes.Lock()
	defer e.nodes.Unlock()
	atOnce, pause := rnd.IntN(2) == 0, time.Duration(rnd.IntN(3000))*time.Millisecond
	restart := func() error { return e.brokers.Restart(atOnce, pause) }
	if atOnce {
		e.try(e.load.pause(restart))
	} else {
		e.try(restart())
	}
}

// loseEnd ends all brokers, and starts them with an older log of a source's partition.
func loseEnd(e *execution, rnd *rand.Rand) {
	e.transactions.Lock()
	defer e.transactions.Unlock()
	e.nodes.Lock()
	defer e.nodes.Unlock()
	s := e.plan.services[rnd.IntN(len(e.plan.services))]
	of := trace.TP{Topic: s.Topics[rnd.IntN(len(s.Topics))], Partition: int32(rnd.IntN(s.Partitions))}
	e.try(e.load.pause(func() error {
		return e.brokers.Older(of, func(from int64) { e.load.lose(trace.OlderLog{TP: of, From: from}) })
	}))
}

// cutConnections ends the connections to a broker, several times.
func cutConnections(e *execution, rnd *rand.Rand) {
	for range 1 + rnd.IntN(5) {
		e.brokers.Proxy(rnd.IntN(brokers.Nodes)).Cut()
		e.rest(rnd, 100*time.Millisecond, 2*time.Second)
	}
}

// delayConnections makes a broker far away.
func delayConnections(e *execution, rnd *rand.Rand) {
	p := e.brokers.Proxy(rnd.IntN(brokers.Nodes))
	p.Set(func(p *brokers.Proxy) { p.Delay = time.Duration(20+rnd.IntN(300)) * time.Millisecond })
	e.rest(rnd, 2*time.Second, 10*time.Second)
	p.Set(func(p *brokers.Proxy) { p.Delay = 0 })
}

// answers are errors of brokers that may pass, by the keys of requests.
var answers = slices.Concat(
	faults([]int16{0}, 6, 7, 19, 20),
	faults([]int16{1}, 6, 56, 78),
	faults([]int16{8}, 14, 15, 16, 27, 25, 22),
	faults([]int16{9}, 14, 16, 88),
	faults([]int16{12, 68}, 15, 16, 25),
	faults([]int16{11, 14}, 15, 27),
	faults([]int16{10}, 15),
	faults([]int16{2}, 6),
	faults([]int16{3}, 5),
)

func faults(keys []int16, codes ...int16) (all []brokers.Fault) {
	for _, code := range codes {
		all = append(all, brokers.Fault{Keys: keys, Code: code})
	}
	return all
}

// answerWithErrors makes the brokers answer some requests with an error that may pass.
func answerWithErrors(e *execution, rnd *rand.Rand) {
	f := answers[rnd.IntN(len(answers))]
	f.Share = 1 + rnd.IntN(4)
	e.whileAnswering(f, rnd, time.Second, 8*time.Second)
}

// takeRights takes a permission away: to read the source or a tier, to write to a tier, to commit.
func takeRights(e *execution, rnd *rand.Rand) {
	s := e.plan.services[rnd.IntN(len(e.plan.services))]
	named := s.Siblings(s.Topics[rnd.IntN(len(s.Topics))], s.Policy.Tiers[:1])
	of := []brokers.Right{
		{Topic: s.Topics[0]}, {Topic: named.Tiers[0].Topic}, {Topic: named.Tiers[0].Topic, Write: true}, {Group: s.Group},
	}[rnd.IntN(4)]
	heal, err := e.brokers.Deny(of)
	e.whileFaulty(heal, err, rnd, 2*time.Second, 10*time.Second)
}
