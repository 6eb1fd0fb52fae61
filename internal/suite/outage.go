package suite

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// outage: while calls of many records fail, no record waits whose calls pass, none that passes
// later is dead-lettered, and what is held keeps its order.
var outage = map[string]func(*testing.T, *fixture){
	"all fail, one partition at a time": func(t *testing.T, f *fixture) {
		s := suffer(t, f, consumer.OrderPartition, func(call) bool { return true })
		s.inOrder(t)
		s.backSoon(t)
		s.callsAtMost(t, 90) // until the topic is held all do, and probes then
	},
	"all fail, one key": func(t *testing.T, f *fixture) {
		s := suffer(t, f, consumer.OrderKey, func(call) bool { return true })
		s.inOrder(t)
		s.backSoon(t)
		s.callsAtMost(t, 90)
	},
	"the same 60 % fail": func(t *testing.T, f *fixture) {
		s := suffer(t, f, consumer.OrderPartition, func(c call) bool { return c.tenant < 12 })
		s.healthyAtOnce(t)
	},
	"60 % fail by chance": func(t *testing.T, f *fixture) {
		s := suffer(t, f, consumer.OrderPartition, func(c call) bool { return c.chance() < 60 })
		s.healthyAtOnce(t)
		s.callsAtMost(t, 125)
	},
	"all fail for 3 s of 6": func(t *testing.T, f *fixture) {
		s := suffer(t, f, consumer.OrderPartition, func(c call) bool { return c.at%(6*time.Second) < 3*time.Second })
		s.healthyAtOnce(t)
		s.callsAtMost(t, 125)
	},
}

const (
	outageLasts = 9 * time.Second
	outageRest  = 7 * time.Second        // records come for so long after it
	outageEach  = 100 * time.Millisecond // some records come
)

// call is a run of the handler.
type call struct {
	record string
	tenant int // of twenty
	number int // of the record's calls
	at     time.Duration
}

// chance returns a number below 100 that is as good as random for each call.
func (c call) chance() uint32 {
	return crc32.ChecksumIEEE(fmt.Append(nil, c.record, "/", c.number)) % 100
}

// suffering is what became of the records of a topic while calls failed.
type suffering struct {
	order consumer.Order
	began time.Time
	fails func(call) bool

	mu       sync.Mutex
	came     int // while calls failed
	calls    int // at that time
	numbers  map[string]int
	failed   map[string]bool
	routed   map[string]bool // to a retry topic
	passed   map[string]bool
	dead     int
	last     map[string]int64 // the last offset that passed in its source, by what keeps an order
	inverted int
	slowest  time.Duration // of records none of whose calls failed
	latest   time.Duration // after the end, of records that stayed in their source
}

func (s *suffering) OnParked(r consumer.Routed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routed[string(r.Record.Value)] = true
}

func (s *suffering) OnDeadLettered(consumer.Routed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead++
}

func (s *suffering) handle(_ context.Context, r *kgo.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := call{record: string(r.Value), at: time.Since(s.began)}
	_, _ = fmt.Sscanf(string(r.Key), "key-%d", &c.tenant)
	s.numbers[c.record]++
	c.number = s.numbers[c.record]
	if c.at < outageLasts {
		s.calls++
		if s.fails(c) {
			s.failed[c.record] = true
			return classify.As(classify.Retryable(errBusy), "down")
		}
	}
	s.passed[c.record] = true
	if !s.failed[c.record] {
		s.slowest = max(s.slowest, time.Since(r.Timestamp))
	}
	if s.routed[c.record] {
		return nil
	}
	of := fmt.Sprint(r.Partition)
	if s.order == consumer.OrderKey {
		of = string(r.Key)
	}
	if r.Offset < s.last[of] {
		s.inverted++
	}
	s.last[of] = max(s.last[of], r.Offset)
	if came := r.Timestamp.Sub(s.began); came < outageLasts {
		s.latest = max(s.latest, c.at-outageLasts)
	}
	return nil
}

// suffer runs a consumer with the default guard through an outage, until all records have passed.
// It fails the test if one has not.
func suffer(t *testing.T, f *fixture, order consumer.Order, fails func(call) bool) *suffering {
	t.Helper()
	s := &suffering{
		order: order, fails: fails, numbers: map[string]int{}, failed: map[string]bool{}, routed: map[string]bool{}, passed: map[string]bool{}, last: map[string]int64{},
	}
	cfg := f.config(s.handle)
	cfg.Order, cfg.Hooks = order, []consumer.Hook{s}
	cfg.Policy = consumer.Policy{Tiers: []time.Duration{2 * time.Second, 8 * time.Second}}
	f.Run(cfg)
	keys := 20
	if order == consumer.OrderKey {
		keys = 1
	}
	s.began = time.Now()
	var all []*kgo.Record
	for n := 0; time.Since(s.began) < outageLasts+outageRest; time.Sleep(outageEach) {
		var some []*kgo.Record
		for range 4 {
			some = append(some, &kgo.Record{Topic: f.topic, Key: fmt.Append(nil, "key-", n*7%keys), Value: fmt.Append(nil, n)})
			n++
		}
		all = append(all, f.Produce(some...)...)
		if time.Since(s.began) < outageLasts {
			s.came = n
		}
	}
	for end := time.Now().Add(time.Minute); s.left(len(all)) > 0 && time.Now().Before(end); time.Sleep(outageEach) {
	}
	f.Conserved()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.passed) != len(all) {
		t.Errorf("%d of %d records have passed after %v, %d are dead-lettered", len(s.passed), len(all), time.Since(s.began), s.dead)
	}
	t.Logf("%v: %d records, %d of them in the outage with %d calls; %d failed, %d have copies; a healthy one took %v, the last %v after the end",
		time.Since(s.began), len(all), s.came, s.calls, len(s.failed), len(s.routed), s.slowest, s.latest)
	return s
}

// left returns how many of so many records have not ended.
func (s *suffering) left(of int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of - len(s.passed) - s.dead
}

// inOrder checks that nothing that stayed in its source passed behind a later record.
func (s *suffering) inOrder(t *testing.T) {
	t.Helper()
	if s.inverted > 0 {
		t.Errorf("%d records passed after a later one", s.inverted)
	}
}

// backSoon checks that what was held passed soon after the end.
func (s *suffering) backSoon(t *testing.T) {
	t.Helper()
	if s.latest <= 0 || s.latest > 30*time.Second {
		t.Errorf("the last record that was held passed %v after the end, want within 30s", s.latest)
	}
}

// healthyAtOnce checks that no record waited none of whose calls failed.
func (s *suffering) healthyAtOnce(t *testing.T) {
	t.Helper()
	if s.slowest > 3*time.Second {
		t.Errorf("a record whose calls pass waited for %v", s.slowest)
	}
}

// callsAtMost checks how many calls there were in the outage for each hundred records.
func (s *suffering) callsAtMost(t *testing.T, percent int) {
	t.Helper()
	if most := percent*s.came/100 + 50; s.calls > most { // the topic is not strained at once
		t.Errorf("%d calls for %d records in the outage, want at most %d", s.calls, s.came, most)
	}
}
