package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/redrive"
)

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
	if e.wait(2 * time.Second) { // the client knows the partitions by then
		e.load.grown.Store(topic, n)
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
		e.wait(transactionLives) // its transactions may be open
	}
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
		e.wait(transactionLives) // it may be open
	}
}

// refuseLetters makes a dead-letter topic unwritable.
func refuseLetters(e *execution, rnd *rand.Rand) {
	s := e.plan.services[rnd.IntN(len(e.plan.services))]
	topic := s.Siblings(s.Topics[rnd.IntN(len(s.Topics))], nil).DLQ
	heal, err := e.brokers.Refuse(topic, rnd)
	e.whileFaulty(heal, err, rnd, 3*time.Second, 12*time.Second)
}
