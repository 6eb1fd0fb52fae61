package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
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

// each runs a test as onOrders does, once for each of the named cases.
func each[C any](t *testing.T, cases map[string]C, partitions int32, f func(*testing.T, *consumertest.Kafka, C)) {
	t.Helper()
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onOrders(t, partitions, func(t *testing.T, k *consumertest.Kafka) { f(t, k, c) })
		})
	}
}

// pair is a case of two tables.
type pair[A, B any] struct {
	a A
	b B
}

// cross combines each case of one table with each of another.
func cross[A, B any](as map[string]A, bs map[string]B) map[string]pair[A, B] {
	all := map[string]pair[A, B]{}
	for nameA, a := range as {
		for nameB, b := range bs {
			all[nameA+"/"+nameB] = pair[A, B]{a, b}
		}
	}
	return all
}

// stop ends a consumer that has no reason to fail.
func stop(t *testing.T, c *consumertest.Consumer) {
	t.Helper()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
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

func config(h consumer.Handler) consumer.Config {
	return consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Handler: h,
		Policy:         consumer.Policy{Tiers: []time.Duration{tier1, tier2}},
		CommitInterval: 100 * time.Millisecond,
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

// provision makes the siblings of a configuration that only verifies them.
func provision(t *testing.T, k *consumertest.Kafka, cfg consumer.Config) {
	t.Helper()
	cfg.Provision.Mode = retrytopics.Create
	stop(t, k.Run(cfg))
}

// client is a client of the test's own.
func client(t *testing.T, k *consumertest.Kafka, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(k.Opts(), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// admin changes the cluster.
func admin(t *testing.T, k *consumertest.Kafka, change func(context.Context, *kadm.Client) error) {
	t.Helper()
	cl := client(t, k)
	defer cl.Close()
	if err := change(t.Context(), kadm.NewClient(cl)); err != nil {
		t.Fatal(err)
	}
}

// produceTo writes a record to a partition that the kit's client does not know yet.
func produceTo(t *testing.T, k *consumertest.Kafka, partition int32, value string) *kgo.Record {
	t.Helper()
	cl := client(t, k, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	r := &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(value)}
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return r
}

// keyOf finds a key of partition p of two.
func keyOf(p int) []byte { return keyAmong(p, 2) }

// keyAmong finds a key of one of some partitions.
func keyAmong(p, partitions int) []byte {
	for i := 0; ; i++ {
		if key := fmt.Append(nil, i); kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(&kgo.Record{Key: key}, partitions) == p {
			return key
		}
	}
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

// makeSiblings makes the topics of config's only tier, with limits.
func makeSiblings(t *testing.T, k *consumertest.Kafka, tier, dlq int) {
	t.Helper()
	k.CreateTopic("orders.retry.300ms", 2)
	k.CreateTopic("orders.dlq", 2)
	limit(t, k, "orders.retry.300ms", tier)
	limit(t, k, "orders.dlq", dlq)
}

// limit sets a topic's max.message.bytes.
func limit(t *testing.T, k *consumertest.Kafka, topic string, to int) {
	t.Helper()
	alter(t, k, topic, "max.message.bytes", fmt.Sprint(to))
}

// alter sets a config of a topic.
func alter(t *testing.T, k *consumertest.Kafka, topic, name, value string) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		resp, err := cl.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
		if err == nil {
			_, err = resp.On(topic, nil)
		}
		return err
	})
}

// growTopic gives a topic more partitions.
func growTopic(t *testing.T, k *consumertest.Kafka, topic string, to int) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		grown, err := cl.UpdatePartitions(ctx, to, topic)
		return errors.Join(err, grown.Error())
	})
}

// expireOffsets sets for how many minutes the brokers keep the offsets of a group without members.
func expireOffsets(t *testing.T, k *consumertest.Kafka, minutes string) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		resp, err := cl.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "offsets.retention.minutes", Value: &minutes}})
		if err == nil {
			err = resp[0].Err
		}
		return err
	})
}

func deleteRecords(t *testing.T, k *consumertest.Kafka, topic string, to int64) {
	t.Helper()
	if err := k.Cluster.DeleteRecords(topic, 0, to); err != nil {
		t.Fatal(err)
	}
}

// expel removes the group's members behind their backs, as a session timeout does.
func expel(t *testing.T, k *consumertest.Kafka, which int) {
	t.Helper()
	info := k.Cluster.GroupInfo("billing")
	if info == nil || len(info.Members) <= which {
		return
	}
	cl := client(t, k)
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = "billing"
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = info.Members[which].MemberID
	req.Members = append(req.Members, m)
	if _, err := req.RequestWith(context.Background(), cl); err != nil {
		t.Logf("expel: %v", err)
	}
}

// content returns the records of a topic.
func content(t *testing.T, k *consumertest.Kafka, topic string) (all []*kgo.Record) {
	t.Helper()
	cl := client(t, k, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	for int64(len(all)) < n {
		all = append(all, cl.PollFetches(context.Background()).Records()...)
	}
	return all
}

// holds checks how many records a topic has.
func holds(t *testing.T, k *consumertest.Kafka, topic string, want int) {
	t.Helper()
	if n := len(content(t, k, topic)); n != want {
		t.Errorf("%s has %d records, want %d", topic, n, want)
	}
}

// setCommitted commits an offset for the group as an operator's tool does, without being a member.
func setCommitted(t *testing.T, k *consumertest.Kafka, topic string, at int64) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		var inGroup kadm.Offsets
		inGroup.AddOffset(topic, 0, at, -1)
		return cl.CommitAllOffsets(ctx, "billing", inGroup)
	})
}

// committed waits until the group has committed the offset.
func committed(t *testing.T, k *consumertest.Kafka, topic string, partition int32, at int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d is committed on %s/%d", at, topic, partition), func() bool {
		info := k.Cluster.GroupInfo("billing")
		return info != nil && info.Commits[topic][partition].Offset == at
	})
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

// denied makes the broker deny, while on, that it knows the id of a topic, on one partition or on
// all (-1).
func denied(k *consumertest.Kafka, topic string, partition int32, on *atomic.Bool) {
	refuse(k, topic, partition, kerr.UnknownTopicID, on)
}

// refuse makes the broker refuse the fetches of a topic, while on, for one partition or for all
// (-1).
func refuse(k *consumertest.Kafka, topic string, partition int32, why *kerr.Error, on *atomic.Bool) {
	id := k.Cluster.TopicInfo(topic).TopicID
	k.Cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		r := req.(*kmsg.FetchRequest)
		if !on.Load() || len(r.Topics) == 0 || r.Topics[0].TopicID != id {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.FetchResponse)
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID = r.Topics[0].Topic, id
		for _, asked := range r.Topics[0].Partitions {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition = asked.Partition
			if partition < 0 || partition == asked.Partition {
				p.ErrorCode, p.HighWatermark = why.Code, -1
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
		time.Sleep(100 * time.Millisecond)
		return resp, nil, true
	})
}

// hits waits until a fault has hit n requests.
func hits(t *testing.T, fault *kfake.FaultHandle, n int) {
	t.Helper()
	if err := fault.Wait(t.Context(), n); err != nil {
		t.Fatal(err)
	}
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

func (j *lateness) note(f consumer.Delivery) {
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

// lines is a log that a test can read.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) with(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.buf.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		n++
	}
	return n
}

// has checks how many lines have all of the parts.
func (l *lines) has(t *testing.T, want int, parts ...string) {
	t.Helper()
	if n := l.with(parts...); n != want {
		t.Errorf("%d lines of the log have %q, want %d", n, parts, want)
	}
}

// logged has a consumer log to lines.
func logged(cfg *consumer.Config) *lines {
	log := &lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	return log
}

// metered has a consumer log to lines, and count the expired records of a topic.
func metered(cfg *consumer.Config, topic string) (*lines, *expiredMeter) {
	m := &expiredMeter{topic: topic}
	cfg.MeterProvider = m
	return logged(cfg), m
}

// expiredMeter sums up siding.expired.records of a topic.
type expiredMeter struct {
	noop.MeterProvider
	topic string
	n     atomic.Int64
}

func (m *expiredMeter) Meter(string, ...metric.MeterOption) metric.Meter { return meter{of: m} }

type meter struct {
	noop.Meter
	of *expiredMeter
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{of: m.of, name: name}, nil
}

type counter struct {
	noop.Int64Counter
	of   *expiredMeter
	name string
}

func (c counter) Add(_ context.Context, n int64, opts ...metric.AddOption) {
	set := metric.NewAddConfig(opts).Attributes()
	if topic, _ := set.Value(attribute.Key("messaging.destination.name")); c.name == "siding.expired.records" && topic.AsString() == c.of.topic {
		c.of.n.Add(n)
	}
}

// joins counts the requests with which members join the group.
func joins(k *consumertest.Kafka) *kfake.FaultHandle {
	return k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Count: -1, Observe: true})
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

func endOf(k *consumertest.Kafka, topic string) (end int64) {
	for _, p := range k.Cluster.PartitionInfos(topic) {
		end += p.HighWatermark
	}
	return end
}
