package chaos

import (
	"math/rand/v2"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// endNode ends one of the brokers, and starts it again.
func endNode(e *execution, rnd *rand.Rand) {
	node := rnd.IntN(brokers.Nodes)
	e.nodes.Lock() // one at a time: a quorum has to be left
	defer e.nodes.Unlock()
	e.try(e.brokers.End(node))
	e.rest(rnd, 2*time.Second, 10*time.Second)
	e.try(e.brokers.Begin(node))
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

// freezeNode keeps a broker's connections open, and lets nothing pass.
func freezeNode(e *execution, rnd *rand.Rand) {
	node := rnd.IntN(brokers.Nodes)
	e.nodes.Lock()
	defer e.nodes.Unlock()
	e.try(e.brokers.Freeze(node, true))
	e.rest(rnd, 2*time.Second, 12*time.Second)
	e.try(e.brokers.Freeze(node, false))
}

// answers are errors of brokers that may pass.
var answers = []brokers.Fault{
	{Keys: []int16{0}, Code: 6},
	{Keys: []int16{0}, Code: 7},
	{Keys: []int16{0}, Code: 19},
	{Keys: []int16{0}, Code: 20},
	{Keys: []int16{1}, Code: 6},
	{Keys: []int16{1}, Code: 56},
	{Keys: []int16{1}, Code: 78},
	{Keys: []int16{8}, Code: 14},
	{Keys: []int16{8}, Code: 15},
	{Keys: []int16{8}, Code: 16},
	{Keys: []int16{8}, Code: 27},
	{Keys: []int16{8}, Code: 25},
	{Keys: []int16{8}, Code: 22},
	{Keys: []int16{9}, Code: 14},
	{Keys: []int16{9}, Code: 16},
	{Keys: []int16{9}, Code: 88},
	{Keys: []int16{12, 68}, Code: 15},
	{Keys: []int16{12, 68}, Code: 16},
	{Keys: []int16{12, 68}, Code: 25},
	{Keys: []int16{11, 14}, Code: 15},
	{Keys: []int16{11, 14}, Code: 27},
	{Keys: []int16{10}, Code: 15},
	{Keys: []int16{2}, Code: 6},
	{Keys: []int16{3}, Code: 5},
}

// answerWithErrors makes the brokers answer some requests with an error that may pass.
func answerWithErrors(e *execution, rnd *rand.Rand) {
	f := answers[rnd.IntN(len(answers))]
	f.Share = 1 + rnd.IntN(4)
	e.whileAnswering(f, rnd, time.Second, 8*time.Second)
}

// moveLeaders elects other leaders of all partitions.
func moveLeaders(e *execution, _ *rand.Rand) { e.try(e.brokers.MoveLeaders()) }

// moveCoordinators gives groups and transactional ids other coordinators.
func moveCoordinators(e *execution, _ *rand.Rand) { e.try(e.brokers.MoveCoordinators()) }

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
