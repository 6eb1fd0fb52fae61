package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
)

// site is a cluster with its services, as operators see it after an incident.
type site struct {
	*consumertest.Kafka
	t       *testing.T
	brokers string
	admin   *kadm.Client
	// settings are further variables of the program, as NAME=value.
	settings []string
	// naming is that of the services; the program has its own, by settings.
	naming retrytopics.Naming
}

// onKafka returns a site on the shared cluster.
func onKafka(t *testing.T) *site {
	t.Helper()
	return on(t, shared.Kafka(t))
}

// on returns a site on a cluster.
func on(t *testing.T, kafka *integration.Kafka) *site {
	t.Helper()
	k := consumertest.On(t, append(kafka.Opts(), kgo.HeartbeatInterval(500*time.Millisecond))...)
	k.Patience = 2 * time.Minute
	return newSite(t, k, kafka.Brokers())
}

// onEmbedded returns a site on an embedded broker, in this process.
func onEmbedded(t *testing.T) *site {
	t.Helper()
	k := consumertest.Start(t)
	return newSite(t, k, k.Cluster.ListenAddrs())
}

func newSite(t *testing.T, k *consumertest.Kafka, brokers []string) *site {
	t.Helper()
	return &site{Kafka: k, t: t, brokers: strings.Join(brokers, ","), admin: kadm.NewClient(client(t, k))}
}

// service is a consumer whose handler can be exchanged, as by a deployment. It records the results
// of its handler.
type service struct {
	*consumertest.Consumer
	site  *site
	topic string
	group string

	mu     sync.Mutex
	handle func(value string, f consumer.Delivery) error
	ran    map[string][]string // of redriven letters, by value: the result of each attempt
}

// deploy starts a service on a source topic.
func (s *site) deploy(topic, group string, tiers ...time.Duration) *service {
	s.t.Helper()
	v := &service{site: s, topic: topic, group: group, ran: map[string][]string{}}
	v.failing("tax")
	v.Consumer = s.Run(consumer.Config{
		Group: group, Topics: []string{topic}, Naming: s.naming, CommitInterval: 100 * time.Millisecond, Policy: consumer.Policy{Tiers: tiers},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			v.mu.Lock()
			handle := v.handle
			v.mu.Unlock()
			f := consumer.DeliveryOf(ctx, r)
			err := handle(string(r.Value), f)
			if f.RedriveID != "" {
				v.mu.Lock()
				v.ran[string(r.Value)] = append(v.ran[string(r.Value)], resultOf(err))
				v.mu.Unlock()
			}
			return err
		},
	})
	return v
}

// resultOf returns the result of an attempt.
func resultOf(err error) string {
	if err == nil {
		return "succeeded"
	}
	return new(classify.Classifier).Classify(err).Verdict.String()
}

// deploys exchanges the handler.
func (v *service) deploys(handle func(value string, f consumer.Delivery) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.handle = handle
}

// failing deploys a bug that all records hit.
func (v *service) failing(class string) {
	v.deploys(func(string, consumer.Delivery) error { return bug(class) })
}

// fixed deploys a handler that accepts all records.
func (v *service) fixed() {
	v.deploys(func(string, consumer.Delivery) error { return nil })
}

// bug returns an error that sends a record to the dead-letter topic at once.
func bug(class string) error {
	return classify.Terminal(classify.As(errors.New("cannot go on"), class))
}

// busy returns an error that sends a record to the next retry topic.
func busy(class string) error {
	return classify.Retryable(classify.As(errors.New("cannot go on"), class))
}

// results returns the results of redriven letters, by value.
func (v *service) results() map[string][]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.ran)
}

// forget deletes the results.
func (v *service) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ran = map[string][]string{}
}

// incident lets n records fail, whose values begin with a word, and waits until all are dead
// letters of the topic.
func (s *site) incident(topic, word string, n int) {
	s.t.Helper()
	before := s.count(topic + ".dlq")
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, "%s %d", word, i)})
	}
	s.Produce(records...)
	s.await(fmt.Sprintf("%d dead letters of %s", n, topic), func() bool { return s.count(topic+".dlq") >= before+int64(n) })
}

// repaired returns a topic with so many dead letters, and its service, which accepts them now.
func (s *site) repaired(partitions int32, letters int) (topic string, v *service) {
	s.t.Helper()
	topic = topicName(s.t)
	s.CreateTopic(topic, partitions)
	v = s.deploy(topic, topic, time.Second)
	s.incident(topic, "order", letters)
	v.fixed()
	return topic, v
}

// planned plans a run of a topic's letters.
func (s *site) planned(topic string, opts ...kgo.Opt) (*redrive.Redriver, *redrive.Plan) {
	s.t.Helper()
	r, err := redrive.New(redrive.Config{Kafka: append(s.Opts(), opts...)})
	must(s.t, err)
	p, err := r.Plan(s.t.Context(), redrive.Selection{Topic: topic + ".dlq"})
	must(s.t, err)
	return r, p
}

// await waits for a condition that must come true.
func (s *site) await(what string, is func() bool) {
	s.t.Helper()
	eventually(s.t, s.Patience, func() error {
		if is() {
			return nil
		}
		return fmt.Errorf("no %s", what)
	})
}

// count returns the number of offsets a topic has used, over all partitions; open transactions
// count. A broker may not lead for a while: on a busy machine it loses its session, too.
func (s *site) count(topic string) (n int64) {
	s.t.Helper()
	eventually(s.t, s.Patience, func() (err error) {
		n, err = s.tryCount(topic)
		return err
	})
	return n
}

// tryCount is count that tolerates absent brokers.
func (s *site) tryCount(topic string) (n int64, err error) {
	ends, err := s.admin.ListEndOffsets(s.t.Context(), topic)
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n, errors.Join(err, ends.Error())
}

// read reads the records that a topic holds now, at the given isolation, with control records.
func (s *site) read(topic string, isolation kgo.IsolationLevel) (all []*kgo.Record) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.Patience)
	defer cancel()
	list := s.admin.ListEndOffsets
	if isolation == kgo.ReadCommitted() {
		list = s.admin.ListCommittedOffsets
	}
	ends, err := list(ctx, topic)
	must(s.t, errors.Join(err, ends.Error()))
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	if len(left) == 0 {
		return nil
	}
	cl, err := kgo.NewClient(append(s.Opts(), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond))...)
	must(s.t, err)
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			s.t.Fatalf("read %s: %v, with %v left", topic, err, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, ok := left[r.Partition]
			if !ok || r.Offset >= end {
				return
			}
			all = append(all, r)
			if r.Offset == end-1 {
				delete(left, r.Partition)
			}
		})
	}
	return all
}

// returned returns the copies that runs wrote to a target, by letter, without those that failed
// from there.
func (s *site) returned(target string, isolation kgo.IsolationLevel) map[headers.Position][]*kgo.Record {
	s.t.Helper()
	found := map[headers.Position][]*kgo.Record{}
	for _, r := range s.read(target, isolation) {
		if m, ok := redriven(r); ok && m.Attempts == 0 {
			found[m.Redrive.From] = append(found[m.Redrive.From], r)
		}
	}
	return found
}

// redriven parses the headers of a copy that a run wrote, or that failed since.
func redriven(r *kgo.Record) (m headers.Meta, ok bool) {
	if r.Attrs.IsControl() {
		return m, false
	}
	m, _ = headers.Parse(r.Headers) // on a source the headers are incomplete
	return m, m.Redrive.ID != ""
}
