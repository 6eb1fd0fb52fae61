package redrive_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/redrive"
)

// virtual runs a parallel sub-test with a broker in virtual time.
func virtual(t *testing.T, name string, test func(t *testing.T, k *consumertest.Kafka)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		consumertest.Virtual(t, test)
	})
}

// switched is a handler that can be replaced.
type switched struct {
	h        atomic.Pointer[consumer.Handler]
	consumer *consumertest.Consumer
}

func (s *switched) set(h consumer.Handler) { s.h.Store(&h) }

func (s *switched) handle(ctx context.Context, r *kgo.Record) error { return (*s.h.Load())(ctx, r) }

// run starts the consumer.
func (s *switched) run(k *consumertest.Kafka) {
	s.consumer = k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle, Policy: consumer.Policy{
		HandlerTimeout: time.Hour, Tiers: []time.Duration{5 * time.Second, 30 * time.Second},
	}})
}

func failing(class string) consumer.Handler {
	return func(context.Context, *kgo.Record) error {
		return classify.Terminal(classify.As(errors.New("no"), class))
	}
}

func succeeding(context.Context, *kgo.Record) error { return nil }

func blocked(ctx context.Context, _ *kgo.Record) error { <-ctx.Done(); return ctx.Err() }

var errBusy = classify.Retryable(classify.As(errors.New("busy"), "busy"))

// stop stops the consumer.
func (s *switched) stop(t *testing.T) {
	t.Helper()
	if err := s.consumer.Stop(); err != nil {
		t.Error(err)
	}
}

// clientOf is a client that is closed when the test ends.
func clientOf(t *testing.T, k *consumertest.Kafka, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(k.Opts(), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func ledgerOf(k *consumertest.Kafka) *dlq.Ledger {
	return dlq.NewLedger("orders.dlq", "orders.dlq.ledger", k.Opts()...)
}

// records are n records of the source with the same value.
func records(n int, value string) (all []*kgo.Record) {
	for range n {
		all = append(all, &kgo.Record{Topic: "orders", Value: []byte(value)})
	}
	return all
}

// service is a consumer that has a bug until it is fixed, and records what it did.
type service struct {
	bugs atomic.Pointer[map[string]bool] // error classes that its handler still has
	mu   sync.Mutex
	ran  map[string]int // by value: how often it was processed
}

func (s *service) handle(_ context.Context, r *kgo.Record) error {
	class, _, _ := strings.Cut(string(r.Value), ":")
	if (*s.bugs.Load())[class] {
		return classify.Terminal(classify.As(errors.New("cannot "+string(r.Value)), class))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran[string(r.Value)]++
	return nil
}

func (s *service) has(bugs ...string) {
	m := map[string]bool{}
	for _, b := range bugs {
		m[b] = true
	}
	s.bugs.Store(&m)
}

func (s *service) config() consumer.Config {
	return consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, 30 * time.Second}}}
}

func newService(bugs ...string) *service {
	s := &service{ran: map[string]int{}}
	s.has(bugs...)
	return s
}

// incident makes n dead letters of each class.
func incident(k *consumertest.Kafka, cfg consumer.Config, n int, classes ...string) {
	k.Run(cfg)
	var records []*kgo.Record
	for _, c := range classes {
		for i := range n {
			records = append(records, &kgo.Record{Topic: "orders", Key: []byte(fmt.Sprint(i)), Value: fmt.Appendf(nil, "%s:%d", c, i)})
		}
	}
	allDeadLettered(k, k.Produce(records...))
}

// allDeadLettered waits for the letters of records, which come in the order of their partition. So
// the last ones are enough: each assertion has a client of its own, which reads all letters.
func allDeadLettered(k *consumertest.Kafka, records []*kgo.Record) {
	last := map[int32]*kgo.Record{}
	for _, r := range records {
		last[r.Partition] = r
	}
	for _, r := range last {
		k.DeadLettered(r, headers.ReasonTerminal)
	}
}

func redriver(t *testing.T, k *consumertest.Kafka, more ...kgo.Opt) *redrive.Redriver {
	t.Helper()
	return redriverOf(t, redrive.Config{Kafka: append(k.Opts(), more...)})
}

// ann is the operator of most runs.
func ann(pace redrive.Pace, on func(redrive.Event)) redrive.RunOptions {
	return redrive.RunOptions{By: "ann", Why: "JIRA-1", Pace: pace, On: on}
}

var byAnn = redrive.AbortOptions{By: "ann", Why: "JIRA-1"}

func redriverOf(t *testing.T, cfg redrive.Config) *redrive.Redriver {
	t.Helper()
	r, err := redrive.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// plan plans a run of all letters.
func plan(t *testing.T, r *redrive.Redriver) *redrive.Plan {
	t.Helper()
	return planOf(t, r, redrive.Selection{Topic: "orders.dlq"})
}

// abortedAgain checks that a run aborted itself, for a cause that has these words.
func abortedAgain(t *testing.T, o redrive.Outcome, err error, words string) []redrive.Failure {
	t.Helper()
	r, ok := errors.AsType[*redrive.FailedAgainError](err)
	if !ok {
		t.Fatalf("the run ended with %v, and %+v", err, o)
	}
	if o.State != redrive.Aborted || o.Cause != r.Cause || !strings.Contains(o.Cause, words) {
		t.Errorf("the outcome is %+v, and the error %v; want %q in the cause", o, err, words)
	}
	return r.Seen
}

// refused checks why something was refused.
func refused(t *testing.T, err error, why redrive.Refusal, words string) {
	t.Helper()
	if e, ok := errors.AsType[*redrive.RefusedError](err); !ok || e.Reason != why || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want it refused as %q, and %q in it", err, why, words)
	}
}

// lacks checks that an error names the permission that is missing.
func lacks(t *testing.T, err error, operation, resource, name string) {
	t.Helper()
	if e, ok := errors.AsType[*redrive.DeniedError](err); !ok || e.Operation != operation || e.Resource != resource || e.Name != name {
		t.Fatalf("got %v, want that %s on %s %s is missing", err, operation, resource, name)
	}
}

// stopped runs until so many letters are sent, and stops.
func stopped(t *testing.T, r *redrive.Redriver, p *redrive.Plan, pace redrive.Pace, at int64) redrive.Outcome {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o, err := r.Run(ctx, p, ann(pace, func(e redrive.Event) {
		if e.Counts.Sent >= at {
			stop()
		}
	}))
	if !errors.Is(err, context.Canceled) || o.State.Finished() {
		t.Fatalf("the run ended with %v, and %+v", err, o)
	}
	return o
}

// on returns the records of a topic's first partition that a committed reader sees.
func on(t *testing.T, k *consumertest.Kafka, topic string) (all []*kgo.Record) {
	t.Helper()
	return at(t, k, topic, 0)
}

// at returns the records of a partition that a committed reader sees, unless more options say
// otherwise.
func at(t *testing.T, k *consumertest.Kafka, topic string, partition int32, more ...kgo.Opt) (all []*kgo.Record) {
	t.Helper()
	end := k.Cluster.PartitionInfo(topic, partition).HighWatermark
	cl := clientOf(t, k, append([]kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
	}, more...)...)
	defer cl.Close()
	for at := int64(0); at < end; {
		cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}

// metaOf is what the headers of a record say.
func metaOf(t *testing.T, r *kgo.Record) headers.Meta {
	t.Helper()
	m, err := headers.Parse(r.Headers)
	if err != nil {
		t.Errorf("record %d of %s: %v", r.Offset, r.Topic, err)
	}
	return m
}

func readLedger(t *testing.T, k *consumertest.Kafka) *dlq.Ledger {
	t.Helper()
	l := ledgerOf(k)
	if err := l.Read(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// states counts the letters of the dead-letter topic by their state in the ledger.
func states(t *testing.T, k *consumertest.Kafka) map[dlq.State]int {
	t.Helper()
	got := map[dlq.State]int{}
	for l, err := range ledgerOf(k).Letters(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.WithResolved) {
		if err != nil {
			t.Fatal(err)
		}
		got[l.State]++
	}
	return got
}

func setOffset(t *testing.T, k *consumertest.Kafka, topic string, at int64) {
	t.Helper()
	adm := kadm.NewClient(clientOf(t, k))
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, at, -1)
	if err := adm.CommitAllOffsets(t.Context(), "billing", offsets); err != nil {
		t.Error(err)
	}
}

// alter sets a topic's configuration.
func alter(t *testing.T, k *consumertest.Kafka, topic, key, value string) {
	t.Helper()
	adm := kadm.NewClient(clientOf(t, k))
	if _, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: key, Value: &value}}, topic); err != nil {
		t.Fatal(err)
	}
}

// listing matches the requests for where partitions begin (-2) or end (-1), of a topic among
// others.
func listing(req kmsg.Request, timestamp int64, topic string) bool {
	for _, of := range req.(*kmsg.ListOffsetsRequest).Topics {
		if of.Topic == topic && len(of.Partitions) > 0 && of.Partitions[0].Timestamp == timestamp {
			return true
		}
	}
	return false
}

// groupless selects letters that siding has not written.
var groupless = dlq.Filter{Match: func(l *dlq.Letter) bool { return l.Meta.Group == "" }}

func incompressible() []byte {
	b := make([]byte, 2000)
	rand.Read(b) // it never fails
	return b
}

// letters makes n dead letters of the class tax on a source of one partition. The handler runs the
// redriven ones, unless it is nil.
func letters(t *testing.T, k *consumertest.Kafka, n int, then consumer.Handler) *switched {
	t.Helper()
	k.CreateTopic("orders", 1)
	s := &switched{}
	s.set(failing("tax"))
	s.run(k)
	all := k.Produce(records(n, "{}")...)
	k.DeadLettered(all[n-1], "terminal") // they come in the order of their partition
	if then != nil {
		s.set(then)
	}
	return s
}

// fixed is a service whose bug is fixed, and left n dead letters of the class tax on three
// partitions. Its handler may have other bugs.
func fixed(t *testing.T, k *consumertest.Kafka, n int, others ...string) *service {
	t.Helper()
	k.CreateTopic("orders", 3)
	s := newService("tax")
	incident(k, s.config(), n, "tax")
	s.has(others...)
	return s
}

// ranOnce checks that each of n records of the class tax was processed once.
func (s *service) ranOnce(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		if times := s.ran[fmt.Sprintf("tax:%d", i)]; times != 1 {
			t.Errorf("record %d was processed %d times, want once", i, times)
		}
	}
}

// planned is a redriver and its plan of a run of all letters.
func planned(t *testing.T, k *consumertest.Kafka) (*redrive.Redriver, *redrive.Plan) {
	t.Helper()
	r := redriver(t, k)
	return r, plan(t, r)
}

func planOf(t *testing.T, r *redrive.Redriver, s redrive.Selection) *redrive.Plan {
	t.Helper()
	p, err := r.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// succeeds checks how a run ended: done, and so many letters succeeded, which were all.
func succeeds(t *testing.T, letters int64) func(redrive.Outcome, error) {
	t.Helper()
	return ends(t, redrive.Counts{Succeeded: letters})
}

// ends checks how a run ended: done, with an outcome for each of its letters. The outcomes add up
// to the letters that it sent and selected. Classes of failures count if some are wanted.
func ends(t *testing.T, want redrive.Counts) func(redrive.Outcome, error) {
	return func(o redrive.Outcome, err error) {
		t.Helper()
		want.Sent = want.Succeeded + want.Failed + want.Discarded + want.Pending + want.Unknown + want.Unfollowed
		want.Selected = want.Sent
		for _, n := range want.Skipped {
			want.Selected += n
		}
		if want.FailedByClass == nil {
			want.FailedByClass = o.Counts.FailedByClass
		}
		if d := cmp.Diff(want, o.Counts, cmpopts.EquateEmpty()); err != nil || o.State != redrive.Done || d != "" {
			t.Errorf("the run ended with %v, and %+v; its counts, -want +got:\n%s", err, o, d)
		}
	}
}

// within is a context that ends the runs which would never end.
func within(t *testing.T, most time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	t.Cleanup(cancel)
	return ctx
}

// writes matches produce requests that contain these words, by whatever codec.
func writes(words string) func(kmsg.Request) bool {
	return func(req kmsg.Request) bool {
		for _, t := range req.(*kmsg.ProduceRequest).Topics {
			for _, p := range t.Partitions {
				var b kmsg.RecordBatch
				if err := b.ReadFrom(p.Records); err != nil {
					panic(err)
				}
				records, err := bubble.Decompressor().Decompress(b.Records, kgo.CompressionCodecType(b.Attributes&7))
				if err != nil {
					panic(err)
				}
				if bytes.Contains(records, []byte(words)) {
					return true
				}
			}
		}
		return false
	}
}

// aborted writes records in a transaction that is aborted.
func aborted(t *testing.T, k *consumertest.Kafka, records ...*kgo.Record) {
	t.Helper()
	cl := clientOf(t, k, kgo.TransactionalID("other"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	if err := errors.Join(cl.BeginTransaction(), cl.ProduceSync(t.Context(), records...).FirstErr(), cl.EndTransaction(t.Context(), kgo.TryAbort)); err != nil {
		t.Error(err)
	}
}

// underWay begins a run, and returns when more than so many letters are sent. The result of the run
// comes later.
func underWay(t *testing.T, r *redrive.Redriver, p *redrive.Plan, sent int64) (ended <-chan error) {
	t.Helper()
	begun, over := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := r.Run(t.Context(), p, ann(redrive.Pace{}, first(sentOver(sent), func() { close(begun) })))
		over <- err
	}()
	<-begun
	return over
}

// first does something at the first event of a run that is so.
func first(is func(redrive.Event) bool, do func()) func(redrive.Event) {
	once := sync.OnceFunc(do)
	return func(e redrive.Event) {
		if is(e) {
			once()
		}
	}
}

func watching(e redrive.Event) bool { return e.State == redrive.Watching }

func sentOver(n int64) func(redrive.Event) bool {
	return func(e redrive.Event) bool { return e.Counts.Sent > n }
}
