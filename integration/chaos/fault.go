package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/redrive"
)

// faultKind is a kind of fault that a run injects.
type faultKind struct {
	name  string
	needs brokers.Capability
	// What it does, as in window.
	infra, parts, down bool
	// do injects the fault, waits, and heals it. It returns early if the run is being healed.
	do func(*execution, *rand.Rand)
}

// faultKinds are all faults.
var faultKinds = []faultKind{
	{name: "kill", do: kill},
	{name: "term", do: term},
	{name: "join", do: join},
	{name: "suspend", do: suspend},
	{name: "tiers", do: changeTiers},
	{name: "grow", do: grow},
	{name: "redrive", do: redriveLetters},
	{name: "outage", down: true, do: letFail(outage.All, 100, 100)},
	{name: "tenants", down: true, do: letFail(outage.Tenants, 30, 70)},
	{name: "chance", down: true, do: letFail(outage.Chance, 30, 90)},
	{name: "flaps", down: true, do: letFail(outage.Flaps, 100, 100)},
	{name: "stuck", do: stickHandler},
	{name: "large", do: writeLarge},
	{name: "transaction", infra: true, do: openTransaction},
	{name: "node", needs: brokers.CanProxy | brokers.CanEnd, infra: true, parts: true, do: endNode},
	{name: "restart", needs: brokers.CanRestart, infra: true, parts: true, do: restartBrokers},
	{name: "older", needs: brokers.CanRestart, infra: true, parts: true, do: loseEnd},
	{name: "cut", needs: brokers.CanProxy, infra: true, parts: true, do: cutConnections},
	{name: "delay", needs: brokers.CanProxy, infra: true, parts: true, do: delayConnections},
	{name: "freeze", needs: brokers.CanFreeze, infra: true, parts: true, do: freezeNode},
	{name: "answers", needs: brokers.CanAnswer, infra: true, parts: true, do: answerWithErrors},
	{name: "leaders", needs: brokers.CanAnswer, infra: true, do: moveLeaders},
	{name: "coordinators", needs: brokers.CanAnswer, infra: true, parts: true, do: moveCoordinators},
	{name: "dlq", needs: brokers.CanRefuse, infra: true, do: refuseLetters},
	{name: "rights", needs: brokers.CanDeny, infra: true, do: takeRights},
}

// kill kills a member.
func kill(e *execution, rnd *rand.Rand) {
	m := e.crew.victim(rnd)
	m.kill()
	e.rest(rnd, 0, 2*time.Second)
	e.crew.replace(m)
}

// term ends a member in order.
func term(e *execution, rnd *rand.Rand) {
	m := e.crew.victim(rnd)
	m.term()
	e.rest(rnd, 0, 2*time.Second)
	e.crew.replace(m)
}

// join adds a member for a while.
func join(e *execution, rnd *rand.Rand) {
	m := e.crew.join(rnd.IntN(len(e.plan.services)))
	if m == nil {
		return
	}
	e.rest(rnd, 5*time.Second, 15*time.Second)
	m.term()
}

// suspend stops a member for longer than its session.
func suspend(e *execution, rnd *rand.Rand) {
	m := e.crew.victim(rnd)
	session := m.Job.Service.Policy.Session
	m.suspend(func() { e.rest(rnd, session+time.Second, session+5*time.Second) })
	e.crew.release(m)
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

// changeTiers removes or adds a tier, by a rolling change of a service's members.
func changeTiers(e *execution, rnd *rand.Rand) {
	service, tiers := rnd.IntN(len(e.plan.services)), tierSets[rnd.IntN(len(tierSets))]
	e.crew.configure(service, tiers)
	for _, m := range e.crew.take(service) {
		m.term()
		e.crew.replace(m)
		e.rest(rnd, 500*time.Millisecond, 2*time.Second)
	}
}

// grow adds partitions to a source, and lets the load know.
func grow(e *execution, rnd *rand.Rand) {
	s := e.plan.services[rnd.IntN(len(e.plan.services))]
	topic, by := s.Topics[rnd.IntN(len(s.Topics))], 1+rnd.IntN(2)
	e.growing.Lock()
	defer e.growing.Unlock()
	n := s.Partitions
	if grown, ok := e.load.grown.Load(topic); ok {
		n = grown.(int)
	}
	if n += by; n > s.Partitions+6 {
		return
	}
	resp, err := e.adm.UpdatePartitions(e.healing, n, topic)
	if err == nil {
		err = resp.Error()
	}
	if e.try(err); err != nil {
		return
	}
	e.cl.ForceMetadataRefresh()
	select {
	case <-time.After(2 * time.Second): // the client knows the partitions by then
		e.load.grown.Store(topic, n)
	case <-e.healing.Done():
	}
}

// transactionLives is the timeout of redrive's transactions, and a little more.
const transactionLives = 12 * time.Second

// redriveLetters redrives letters whose records have been repaired meanwhile.
func redriveLetters(e *execution, rnd *rand.Rand) {
	s := e.plan.services[rnd.IntN(len(e.plan.services))]
	name := s.Siblings(s.Topics[rnd.IntN(len(s.Topics))], nil).DLQ
	e.transactions.RLock()
	defer e.transactions.RUnlock()
	ctx, cancel := context.WithTimeout(e.healing, 20*time.Second)
	defer cancel()
	r, err := redrive.New(redrive.Config{Kafka: e.direct()})
	if err != nil {
		e.try(err)
		return
	}
	o := redrive.RunOptions{By: "chaos", Pace: redrive.Pace{
		Rate: 500, Ramp: -1, Window: time.Second, Canary: -1, Tolerate: 1 << 30, TolerateShare: 1,
	}}
	p, err := r.Plan(ctx, redrive.Selection{Topic: name, Filter: dlq.Filter{Classes: []string{trace.ClassRepaired}}})
	if err == nil {
		_, err = r.Run(ctx, p, o)
	}
	var refused *redrive.RefusedError
	if errors.As(err, &refused) {
		if refused.Reason != redrive.RefusedUnfinished {
			return // there are no letters
		}
		_, err = r.Resume(ctx, name, refused.Run.ID, o)
	}
	if e.try(err); err != nil {
		select { // its transactions may be open
		case <-time.After(transactionLives):
		case <-e.healing.Done():
		}
	}
}

// letFail makes runs of a service fail for a while, as if what they call were down: a share of
// them, in percent, from least to most.
func letFail(mode outage.Mode, least, most int) func(*execution, *rand.Rand) {
	return func(e *execution, rnd *rand.Rand) {
		e.outages.Lock() // one at a time
		defer e.outages.Unlock()
		group, percent := e.plan.services[rnd.IntN(len(e.plan.services))].Group, least+rnd.IntN(most-least+1)
		file, turns, shortest, longest := trace.OutageFile(e.cfg.Dir, group), 1, 8*time.Second, 20*time.Second
		switch mode {
		case outage.Flaps:
			turns, shortest, longest = 4, time.Second, 5*time.Second
		case outage.Tenants, outage.Chance: // each retry fails again, and again
			shortest, longest = 5*time.Second, 12*time.Second
		}
		e.logf("%s: outage, %s, %d %%", group, mode, percent)
		for turn := 0; turn < turns && e.failing.Err() == nil; turn++ {
			if turn > 0 {
				rest(e.failing, rnd, shortest, longest)
			}
			if err := outage.Begin(file, mode, percent); err != nil {
				e.try(err)
				return
			}
			rest(e.failing, rnd, shortest, longest)
			e.try(os.Remove(file))
		}
	}
}

// stickHandler writes a record whose handler ignores its context for stuckFor.
func stickHandler(e *execution, rnd *rand.Rand) {
	e.load.stick.Add(1)
	e.rest(rnd, trace.StuckFor, trace.StuckFor+time.Second)
}

// writeLarge writes records that fail, each a third of what a member may hold of parked records.
func writeLarge(e *execution, rnd *rand.Rand) {
	e.load.large.Add(10 + rnd.Int64N(30))
	e.rest(rnd, 2*time.Second, 6*time.Second)
}

// openTransaction leaves a stranger's transaction open on a source or a tier: nothing behind it can
// be read. It is aborted: no rule knows of a stranger's record.
func openTransaction(e *execution, rnd *rand.Rand) {
	s := e.plan.services[rnd.IntN(len(e.plan.services))]
	topic := s.Topics[rnd.IntN(len(s.Topics))]
	if rnd.IntN(2) == 0 {
		topic = s.Siblings(topic, s.Policy.Tiers[:1]).Tiers[0].Topic
	}
	r := &kgo.Record{Topic: topic, Partition: int32(rnd.IntN(s.Partitions)), Value: []byte("a stranger's")}
	e.transactions.RLock()
	defer e.transactions.RUnlock()
	cl, err := kgo.NewClient(append(e.direct(), kgo.TransactionalID("chaos-stranger"), kgo.TransactionTimeout(transactionLives), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		e.try(err)
		return
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(e.healing, transactionLives)
	defer cancel()
	if err = cl.BeginTransaction(); err == nil {
		err = cl.ProduceSync(ctx, r).FirstErr()
	}
	if err == nil {
		e.rest(rnd, 2*time.Second, 10*time.Second)
	}
	end, cancel := context.WithTimeout(context.Background(), transactionLives)
	defer cancel()
	if err = errors.Join(err, cl.EndTransaction(end, kgo.TryAbort)); err != nil {
		e.try(err)
		select { // it may be open
		case <-time.After(transactionLives):
		case <-e.healing.Done():
		}
	}
}

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

// refuseLetters makes a dead-letter topic unwritable.
func refuseLetters(e *execution, rnd *rand.Rand) {
	s := e.plan.services[rnd.IntN(len(e.plan.services))]
	topic := s.Siblings(s.Topics[rnd.IntN(len(s.Topics))], nil).DLQ
	heal, err := e.brokers.Refuse(topic, rnd)
	e.whileFaulty(heal, err, rnd, 3*time.Second, 12*time.Second)
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
