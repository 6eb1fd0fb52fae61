package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// load writes the records of a run to the services' topics.
type load struct {
	opts     []kgo.Opt
	cl       *kgo.Client
	cfg      Config
	services []trace.Service
	rnd      *rand.Rand
	// grown has the partitions of topics that were given more of them.
	grown sync.Map

	sent  atomic.Int64
	stick atomic.Int64 // how many of the next records are stuck
	large atomic.Int64 // how many of the next records fail and are large
	mark  string       // in keys, values and headers

	poisons int // how many records kill

	writing sync.Mutex // held while records are written

	mu      sync.Mutex
	acked   map[int64]trace.Written
	lost    map[int64]bool // acknowledged, and gone with the end of a log
	older   []trace.OlderLog
	refused map[string]int // by error: no record of the run, unless it is in its topic all the same
}

// poisonEvery is the distance between records that kill, in records.
const poisonEvery = 5000

// weights of the scripts, out of 1,000. The others pass at once.
var weights = []struct {
	act    trace.Act
	weight int
}{
	{trace.ActRetry, 80}, {trace.ActAfter, 10}, {trace.ActHang, 1}, {trace.ActTerminal, 15}, {trace.ActDiscard, 15}, {trace.ActPanic, 5}, {trace.ActIgnore, 1}, {trace.ActRedriven, 5},
}

var classes = []string{"db.busy", "gateway.timeout", "stock.locked", "account.unknown"}

func (l *load) script(id int64) trace.Script {
	s := trace.Script{ID: id, Act: trace.ActPass, Class: classes[l.rnd.IntN(len(classes))]}
	n := l.rnd.IntN(1000)
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			s.Act = w.act
			break
		}
	}
	s.Times = 1 + l.rnd.IntN(3)
	if l.rnd.IntN(10) == 0 {
		s.Times = trace.Always
	}
	switch s.Act {
	case trace.ActHang:
		s.Times = 1
	case trace.ActRedriven:
		s.Class = trace.ClassRepaired
	}
	if n := id / poisonEvery; id%poisonEvery == poisonEvery/2 && n < int64(l.poisons) {
		s.Act, s.Times = []trace.Act{trace.ActKill, trace.ActDecode, trace.ActKill}[n%3], []int{0, 0, 1}[n%3]
	} else if l.stick.Load() > 0 {
		l.stick.Add(-1)
		s.Act = trace.ActStuck
	}
	if l.rnd.IntN(20) == 0 {
		s.Work = time.Duration(l.rnd.IntN(20_000)) * time.Microsecond
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
		l.writing.Lock()
		for ; id < due; id++ {
			if id-l.sent.Load() > 50_000 {
				break // the brokers are away
			}
			l.write(id)
		}
		l.writing.Unlock()
	}
}

// connect makes the client that writes. It learns of new partitions within a second.
func (l *load) connect() (err error) {
	l.cl, err = kgo.NewClient(append(slices.Clip(l.opts), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1<<20), kgo.MetadataMaxAge(time.Second))...)
	return err
}

// pause calls do while no record is on its way to the brokers, and writes with another client then:
// the embedded broker forgets by a kill what producers sent, so what was on its way would be in its
// log twice, and so may be what a producer sends whose number it knows no more.
func (l *load) pause(do func() error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.flush(ctx); err != nil {
		return err
	}
	l.cl.Close()
	return errors.Join(do(), l.connect())
}

func (l *load) write(id int64) {
	sc := l.script(id)
	s := l.services[l.rnd.IntN(len(l.services))]
	topic := s.Topics[l.rnd.IntN(len(s.Topics))]
	partitions := s.Partitions
	if n, ok := l.grown.Load(topic); ok {
		partitions = n.(int)
	}
	key, value := l.value(l.rnd.IntN(1 << 20))
	if l.large.Load() > 0 && s.MaxParkedBytes > 0 && sc.Act == trace.ActPass && l.cfg.Value == nil {
		l.large.Add(-1)
		sc.Act, value = trace.ActRetry, append(value, make([]byte, s.MaxParkedBytes/3)...)
	}
	r := &kgo.Record{
		Topic: topic, Partition: int32(l.rnd.IntN(partitions)), Key: key, Value: value,
		Headers: []kgo.RecordHeader{sc.Header(), {Key: "account-" + l.mark, Value: []byte("header " + l.mark)}},
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
		l.acked[id] = trace.Written{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, At: time.Now().UnixNano()}
	})
}

// lose records that the brokers lost the end of a log, with what they had acknowledged.
func (l *load) lose(o trace.OlderLog) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.older = append(l.older, o)
	for id, w := range l.acked {
		if w.Topic == o.Topic && w.Partition == o.Partition && w.Offset >= o.From {
			l.lost[id] = true
			delete(l.acked, id)
		}
	}
}

// hasLost reports whether a source's partition of that number lost the end of its log.
func (l *load) hasLost(partition int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.older, func(o trace.OlderLog) bool { return o.Partition == partition })
}

// value returns key and value of a record, with the mark unless they are a team's.
func (l *load) value(n int) (key, value []byte) {
	if l.cfg.Value != nil {
		return l.cfg.Value(n)
	}
	if n%10 != 0 {
		key = fmt.Appendf(nil, "key-%d-%s", n%40, l.mark)
	}
	return key, fmt.Appendf(nil, "value of record %d, %s", n, l.mark)
}

// flush awaits the answers to all that was written.
func (l *load) flush(ctx context.Context) error {
	if err := l.cl.Flush(ctx); err != nil {
		return fmt.Errorf("the brokers do not answer the load: %w", err)
	}
	return nil
}
