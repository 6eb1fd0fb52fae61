package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// written is a record that the brokers acknowledged.
type written struct {
	topic     string
	partition int32
	offset    int64
}

// load writes the records of a run to the services' topics.
type load struct {
	cl       *kgo.Client
	cfg      Config
	services []service
	rnd      *rand.Rand
	// grown has the partitions of topics that were given more of them.
	grown sync.Map

	sent atomic.Int64

	mu      sync.Mutex
	acked   map[int64]written
	refused map[string]int // by error: no record of the run, unless it is in its topic all the same
}

// poisonEvery is the distance between records that kill, in records.
const poisonEvery = 5000

// weights of the scripts, out of 1,000. The others pass at once.
var weights = []struct {
	act    act
	weight int
}{
	{actRetry, 80}, {actAfter, 10}, {actHang, 1}, {actTerminal, 15}, {actDiscard, 15}, {actPanic, 5}, {actIgnore, 1}, {actRedriven, 5},
}

var classes = []string{"db.busy", "gateway.timeout", "stock.locked", "account.unknown"}

func (l *load) script(id int64) script {
	s := script{id: id, act: actPass, class: classes[l.rnd.IntN(len(classes))]}
	n := l.rnd.IntN(1000)
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			s.act = w.act
			break
		}
	}
	s.times = 1 + l.rnd.IntN(3)
	if l.rnd.IntN(10) == 0 {
		s.times = always
	}
	switch s.act {
	case actHang:
		s.times = 1
	case actRedriven:
		s.class = classRepaired
	}
	if id%poisonEvery == poisonEvery/2 && id/poisonEvery < int64(l.cfg.Poisons) {
		s.act, s.class = actKill, "none"
	}
	if l.rnd.IntN(20) == 0 {
		s.work = time.Duration(l.rnd.IntN(20_000)) * time.Microsecond
	}
	return s
}

// run writes at the rate until ctx ends, and then awaits the answers. After an interruption by the
// brokers it catches up.
func (l *load) run(ctx context.Context) {
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for id := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		due := int64(time.Since(began).Seconds() * float64(l.cfg.Rate))
		for ; id < due; id++ {
			if id-l.sent.Load() > 50_000 {
				break // the brokers are away
			}
			l.write(id)
		}
	}
}

func (l *load) write(id int64) {
	s := l.services[l.rnd.IntN(len(l.services))]
	topic := s.Topics[l.rnd.IntN(len(s.Topics))]
	partitions := s.Partitions
	if n, ok := l.grown.Load(topic); ok {
		partitions = n.(int)
	}
	key, value := l.cfg.Value(l.rnd.IntN(1 << 20))
	r := &kgo.Record{
		Topic: topic, Partition: int32(l.rnd.IntN(partitions)), Key: key, Value: value,
		Headers: []kgo.RecordHeader{l.script(id).header()},
		// Producers' clocks differ.
		Timestamp: time.Now().Add(time.Duration(l.rnd.IntN(600)-300) * time.Second).Truncate(time.Millisecond),
	}
	l.cl.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		l.sent.Add(1)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.refused[err.Error()]++
			return
		}
		l.acked[id] = written{r.Topic, r.Partition, r.Offset}
	})
}

// flush awaits the answers to all that was written.
func (l *load) flush(ctx context.Context) error {
	if err := l.cl.Flush(ctx); err != nil {
		return fmt.Errorf("the brokers do not answer the load: %w", err)
	}
	return nil
}
