package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// orders are the ways to run a partition's records.
var orders = map[string]consumer.Order{"partition": consumer.OrderPartition, "key": consumer.OrderKey, "none": consumer.OrderNone}

// sourceAndTier are the two kinds of topics that are read.
var sourceAndTier = map[string]string{"orders": "orders", "orders.retry.300ms": "orders.retry.300ms"}

// onOrders runs a test in parallel with others, in virtual time, on a broker with the topic orders.
func onOrders(t *testing.T, partitions int32, f func(*testing.T, *consumertest.Kafka)) {
	t.Helper()
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", partitions)
		f(t, k)
	})
}

// each runs a test as onOrders does, once for each of the named cases, or for one of them.
func each[C any](t *testing.T, table map[string]C, partitions int32, f func(*testing.T, *consumertest.Kafka, C)) {
	t.Helper()
	t.Parallel()
	for name, c := range cases.One(t.Name(), table) {
		t.Run(name, func(t *testing.T) {
			onOrders(t, partitions, func(t *testing.T, k *consumertest.Kafka) { f(t, k, c) })
		})
	}
}

// stop ends a consumer that has no reason to fail.
func stop(t *testing.T, c *consumertest.Consumer) {
	t.Helper()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}

// stopStuck is stop for handlers that may ignore the end of their context.
func stopStuck(t *testing.T, c *consumertest.Consumer) {
	t.Helper()
	if err, stuck := c.Err(), new(consumer.StuckError); err != nil && !errors.As(err, &stuck) {
		t.Error(err)
	}
}

// deadLettered waits until each record is dead-lettered for the reason.
func deadLettered(k *consumertest.Kafka, records []*kgo.Record, reason headers.Reason) {
	for _, r := range records {
		k.DeadLettered(r, reason)
	}
}

// handledOnce waits until each record was handled, and fails if one was handled twice.
func handledOnce(k *consumertest.Kafka, records []*kgo.Record) {
	for _, r := range records {
		k.Handled(r, 1)
	}
}

const (
	tier1 = 300 * time.Millisecond
	tier2 = 900 * time.Millisecond
)

var errBusy = errors.New("payment gateway is busy")

const unlimited = 1 << 20

// protocols are the two group protocols.
var protocols = map[string][]kgo.Opt{"classic": nil, "KIP-848": {kgo.ServerSideBalancer()}}

// balancers are the ways in which a group shares its partitions.
var balancers = map[string][]kgo.Opt{
	"cooperative": nil, "eager": {kgo.Balancers(kgo.RangeBalancer())}, "KIP-848": {kgo.ServerSideBalancer()},
}

// takes waits for d, or until ctx ends.
func takes(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// noBreaker and noBudget are for handlers that fail most records on purpose.
var (
	noBreaker = consumer.Breaker{Off: true}
	noBudget  = consumer.RetryBudget{Off: true}
)

func config(h consumer.Handler) consumer.Config {
	return consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Handler: h,
		Policy:         consumer.Policy{Tiers: []time.Duration{tier1, tier2}, Breaker: noBreaker, RetryBudget: noBudget},
		CommitInterval: 100 * time.Millisecond,
	}
}

// watch wraps a configuration's handler, and returns whether that has succeeded with a record.
func watch(cfg *consumer.Config) (handled func(*kgo.Record) bool) {
	type at struct {
		partition int32
		offset    int64
	}
	var done sync.Map
	inner := cfg.Handler
	cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
		err := inner(ctx, r)
		if err == nil {
			done.Store(at{r.Partition, r.Offset}, true)
		}
		return err
	}
	return func(r *kgo.Record) bool {
		_, ok := done.Load(at{r.Partition, r.Offset})
		return ok
	}
}

func many(n int) []*kgo.Record {
	all := make([]*kgo.Record, n)
	for i := range all {
		all[i] = &kgo.Record{Topic: "orders", Key: fmt.Append(nil, "key-", i%20), Value: fmt.Append(nil, i)}
	}
	return all
}

// inBatches produces some batches of n records, and waits after each.
func inBatches(k *consumertest.Kafka, batches, n int, wait time.Duration) (records []*kgo.Record) {
	for range batches {
		records = append(records, k.Produce(many(n)...)...)
		time.Sleep(wait)
	}
	return records
}

// until is a handler that waits for its release.
func until(release <-chan struct{}) consumer.Handler {
	return func(context.Context, *kgo.Record) error {
		<-release
		return nil
	}
}

// onPartition returns records of one of two partitions.
func onPartition(partition int, value string, n int) []*kgo.Record {
	all := make([]*kgo.Record, n)
	for i, key := 0, keyOf(partition); i < n; i++ {
		all[i] = &kgo.Record{Topic: "orders", Key: key, Value: []byte(value)}
	}
	return all
}

func fine(context.Context, *kgo.Record) error { return nil }

// busyOnce is a handler that fails each record's first attempt.
func busyOnce(ctx context.Context, r *kgo.Record) error {
	if consumer.DeliveryOf(ctx, r).Attempt == 1 {
		return classify.Retryable(errBusy)
	}
	return nil
}

// busy is for a record that never succeeds, and fails the test if an attempt is early.
func busy(t *testing.T) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		if facts := consumer.DeliveryOf(ctx, r); time.Now().UnixMilli() < facts.NotBefore.UnixMilli() {
			t.Errorf("attempt %d of offset %d is early by %v", facts.Attempt, r.Offset, time.Until(facts.NotBefore))
		}
		return classify.Retryable(errBusy)
	}
}

func handle(ctx context.Context, r *kgo.Record) error {
	facts := consumer.DeliveryOf(ctx, r)
	if time.Now().UnixMilli() < facts.NotBefore.UnixMilli() {
		return fmt.Errorf("early by %v", time.Until(facts.NotBefore))
	}
	switch {
	case facts.Original.Offset%11 == 0:
		return classify.Retryable(errBusy)
	case facts.Original.Offset%7 == 0 && facts.Attempt == 1:
		return classify.Retryable(errBusy)
	case facts.Original.Offset%13 == 0:
		return errors.New("no such SKU")
	}
	time.Sleep(time.Millisecond)
	return nil
}

// sortOfBad fails records whose value begins with "bad" for good, and those with "busy" until they
// are retried.
func sortOfBad(ctx context.Context, r *kgo.Record) error {
	switch {
	case bytes.HasPrefix(r.Value, []byte("bad")):
		return errors.New("no such SKU")
	case bytes.HasPrefix(r.Value, []byte("busy")) && consumer.DeliveryOf(ctx, r).Attempt == 1:
		return classify.Retryable(errBusy)
	}
	return nil
}

// quietly makes the consumer's own requests rare, since a virtual hour takes as much time as it has
// requests.
func quietly(cfg *consumer.Config) {
	cfg.Kafka = append(cfg.Kafka, kgo.FetchMaxWait(time.Minute), kgo.HeartbeatInterval(10*time.Second))
	cfg.CommitInterval = time.Second
}

// eventually waits up to a minute for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// runsUntilParked runs a consumer until the records are parked in a long tier, and stops it.
func runsUntilParked(t *testing.T, k *consumertest.Kafka, cfg consumer.Config, tier time.Duration, records ...*kgo.Record) {
	t.Helper()
	c := k.Run(cfg)
	for _, r := range records {
		k.Parked(r, tier, "")
	}
	k.Conserved()
	stop(t, c)
}

// keyOf finds a key of partition p of two.
func keyOf(p int) []byte { return keyAmong(p, 2) }

// keyAmong finds a key of one of some partitions.
func keyAmong(p, partitions int) []byte { return keysAmong(p, partitions, 1)[0] }

// keysAmong finds n keys of one of some partitions.
func keysAmong(p, partitions, n int) (keys [][]byte) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Append(nil, i); kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(&kgo.Record{Key: key}, partitions) == p {
			keys = append(keys, key)
		}
	}
	return keys
}

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = random.Read(b) // never fails
	return b
}

// prose returns n bytes of text that hardly compress.
func prose(n int) string {
	b := noise(n)
	for i := range b {
		b[i] = ' ' + b[i]%95
	}
	return string(b)
}

func waiting(c *consumertest.Consumer) (n int) {
	for _, l := range c.Health().Lanes {
		n += l.Parked
	}
	return n
}

// isOK checks that nothing is for an operator to see to.
func isOK(t *testing.T, c *consumertest.Consumer) {
	t.Helper()
	if h := c.Health(); !h.OK || len(h.Missing) > 0 {
		t.Errorf("health is %+v, want OK", h)
	}
}

// allAre checks the state of every lane.
func allAre(t *testing.T, c *consumertest.Consumer, want consumer.State) {
	t.Helper()
	for _, l := range c.Health().Lanes {
		if l.State != want {
			t.Errorf("lane %d is %s (%s), want %s", l.Partition, l.State, l.Why, want)
		}
	}
}

func blocked(c *consumertest.Consumer) (all []consumer.LaneHealth) {
	for _, l := range c.Health().Lanes {
		if l.State == consumer.StateBlocked {
			all = append(all, l)
		}
	}
	return all
}

// ran counts the outcomes of records, by partition and offset.
type ran struct {
	mu sync.Mutex
	n  map[[2]int64]int
}

func (r *ran) count(rec *kgo.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[[2]int64]int{}
	}
	r.n[[2]int64{int64(rec.Partition), rec.Offset}]++
}

func (r *ran) times(rec *kgo.Record) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[[2]int64{int64(rec.Partition), rec.Offset}]
}

// reset forgets the counts.
func (r *ran) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.n)
}

// after counts the records that a handler handled.
func (r *ran) after(h consumer.Handler) consumer.Handler {
	return func(ctx context.Context, rec *kgo.Record) error {
		err := h(ctx, rec)
		if err == nil {
			r.count(rec)
		}
		return err
	}
}

// all waits until each record was counted, however often.
func (r *ran) all(t *testing.T, records []*kgo.Record) {
	t.Helper()
	eventually(t, "every record is handled", func() bool {
		return !slices.ContainsFunc(records, func(rec *kgo.Record) bool { return r.times(rec) == 0 })
	})
}

// lateness is a handler's journal of how late its retries came, by the tier.
type lateness struct {
	mu    sync.Mutex
	worst map[time.Duration]time.Duration
	early int
}

func (j *lateness) add(f consumer.Delivery) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f.Tier == 0 {
		return
	}
	if j.worst == nil {
		j.worst = map[time.Duration]time.Duration{}
	}
	late := time.Since(f.NotBefore)
	if late < 0 {
		j.early++
	}
	j.worst[f.Tier] = max(j.worst[f.Tier], late)
}

// check fails the test if a retry was early, or one of these tiers had one more than 100 ms late.
func (j *lateness) check(t *testing.T, tiers ...time.Duration) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, tier := range tiers {
		if worst := j.worst[tier]; worst > 100*time.Millisecond || j.early > 0 {
			t.Errorf("%v: the latest is %v late, and %d are early; want 100ms at most, and none", tier, worst, j.early)
		}
	}
}

// laneOf is the health of one lane.
func laneOf(t *testing.T, c *consumertest.Consumer, topic string, partition int32) consumer.LaneHealth {
	t.Helper()
	for _, l := range c.Health().Lanes {
		if l.Topic == topic && l.Partition == partition {
			return l
		}
	}
	t.Fatalf("health knows no lane %s/%d", topic, partition)
	return consumer.LaneHealth{}
}

// waitsBecause checks that a lane waits for its start, that health gives the reason, and that it is
// not OK once that takes long.
func waitsBecause(t *testing.T, c *consumertest.Consumer, topic string, partition int32, why string) {
	t.Helper()
	l, ok := laneOf(t, c, topic, partition), c.Health().OK
	if l.State != consumer.StateStarting || !strings.Contains(l.Why, why) || ok {
		t.Errorf("lane %s/%d is %v (%s) and health is OK: %v; want starting, since %s, and not OK", topic, partition, l.State, l.Why, ok, why)
	}
}
