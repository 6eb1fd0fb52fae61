package main

// An embedded broker of the tests, and the topics and letters that it holds.

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// broker is an embedded cluster of a test.
type broker struct {
	*kfake.Cluster
	addr  string
	dial  func(ctx context.Context, network, host string) (net.Conn, error) // nil is TCP
	admin *kadm.Client
	cl    *kgo.Client
}

func newBroker(t *testing.T, opts ...kfake.Opt) *broker {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &broker{Cluster: c, addr: strings.Join(c.ListenAddrs(), ",")}
}

// inMemory is newBroker on a network in memory, for a test in virtual time.
func inMemory(t *testing.T, opts ...kfake.Opt) *broker {
	t.Helper()
	var network kfake.VirtualNetwork
	b := newBroker(t, append(opts, kfake.ListenFn(network.Listen), kfake.Ports(9092))...)
	bubble.Recode(b.Cluster)
	b.dial = network.DialContext
	return b
}

// client makes a client that writes to the partition that a record names.
func (b *broker) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.ListenAddrs()...), kgo.Dialer(b.dial), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// open makes the test's own clients.
func (b *broker) open(t *testing.T, opts ...kgo.Opt) *broker {
	t.Helper()
	b.cl = b.client(t, opts...)
	b.admin = kadm.NewClient(b.cl)
	return b
}

func (b *broker) topic(t *testing.T, name string, partitions int32, configs map[string]string) {
	t.Helper()
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = &v
	}
	if _, err := b.admin.CreateTopic(t.Context(), partitions, 1, values, name); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) produce(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	if err := b.cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// letter is a dead letter that failed some time before noon.
func letter(topic string, partition int32, ago time.Duration, m headers.Meta) *kgo.Record {
	at := clitest.Noon.Add(-ago)
	if m.Reason == "" {
		m.Reason = headers.ReasonTerminal
	}
	m.FirstFailedAt, m.FailedAt = at.Add(-time.Minute), at
	return &kgo.Record{
		Topic: topic, Partition: partition, Timestamp: at, Key: []byte("k"), Value: []byte(`{"sku":"x"}`),
		Headers: m.Append([]kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-a")}}),
	}
}

// commit commits a group's offset on a partition.
func (b *broker) commit(t *testing.T, group, topic string, partition int32, at int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	if _, err := b.admin.CommitOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// deleteTo deletes the records of a partition below an offset, as retention would.
func (b *broker) deleteTo(t *testing.T, topic string, partition int32, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset})
	r, err := b.admin.DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openLetters are the places of the letters that are open.
func (b *broker) openLetters(t *testing.T) string {
	t.Helper()
	return strings.Join(places(t, b.redrive(t, "list", "orders.dlq", "-o", "jsonl")), " ")
}

// wantOpen checks which letters are open.
func (b *broker) wantOpen(t *testing.T, want string) {
	t.Helper()
	if got := b.openLetters(t); got != want {
		t.Errorf("open are %s, want %s", got, want)
	}
}

// content is the part of a letter that must not change.
type content struct {
	Offset     int64
	Key, Value []byte
	Headers    []kgo.RecordHeader
}

// hold returns the content of all letters of a dead-letter topic.
func (b *broker) hold(t *testing.T, topic string) map[int32][]content {
	t.Helper()
	held := map[int32][]content{}
	for l, err := range dlq.Read(t.Context(), topic, dlq.Filter{}, dlq.Cursor{}, kgo.SeedBrokers(b.ListenAddrs()...)) {
		if err != nil {
			t.Fatal(err)
		}
		r := l.Record
		held[r.Partition] = append(held[r.Partition], content{r.Offset, r.Key, r.Value, r.Headers})
	}
	return held
}

// wantHeld checks the content of all letters of a dead-letter topic.
func (b *broker) wantHeld(t *testing.T, topic string, want map[int32][]content) {
	t.Helper()
	if diff := cmp.Diff(want, b.hold(t, topic)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", topic, diff)
	}
}

// as returns an invocation by a user of a guarded broker, whose password is the user's name.
func (b *broker) as(user string) invocation {
	return invocation{now: time.Now, env: map[string]string{"SIDING_BROKERS": b.addr, "SIDING_SASL": "PLAIN", "SIDING_SASL_USER": user, "SIDING_SASL_PASSWORD": user}}
}

// aclOn is a permission on a topic.
func aclOn(topic string, op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

// guarded is a broker with letters of group billing, which has a member, and with a user ann who
// has the given permissions.
func guarded(t *testing.T, permissions []kfake.ACL) *broker {
	t.Helper()
	admin := kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism())
	b := newBroker(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "ann", "ann", permissions...)).open(t, admin)
	for _, topic := range []string{"orders", "orders.retry.5s", "orders.dlq.ledger"} {
		b.topic(t, topic, 1, nil)
	}
	// Its letters are as old as noon.
	b.topic(t, "orders.dlq", 1, map[string]string{"retention.ms": "-1"})
	// A resolved letter, an open one, and a copy of the first. The ledger gets an entry about the
	// copy when the first letter is pruned.
	for _, offset := range []int64{7, 8, 7} {
		b.produce(t, letter("orders.dlq", 0, 0, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Original: headers.Position{Topic: "orders", Offset: offset, Timestamp: clitest.Noon}}))
	}
	b.note(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada", Why: "x"})
	joined := make(chan struct{})
	member := b.client(t, admin, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, _ map[string][]int32) { close(joined) }))
	<-joined
	member.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{"orders.retry.5s": {0: {Epoch: -1}}},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, err error) {
			if err != nil || r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Errorf("commit: %v, %+v", err, r)
			}
		})
	return b
}

func kind(r kmsg.ACLResourceType) string {
	switch r {
	case kmsg.ACLResourceTypeGroup:
		return "group"
	case kmsg.ACLResourceTypeTransactionalId:
		return "transactional-id"
	}
	return "topic"
}

// aftermath is a dead-letter topic with letters of two groups, a copy, one that siding did not
// write, and one that was discarded: of 7 letters 5 are open.
func aftermath(t *testing.T, opts ...kfake.Opt) *broker {
	t.Helper()
	return newBroker(t, opts...).aftermath(t)
}

// aftermath gives a broker the topics of that name.
func (b *broker) aftermath(t *testing.T) *broker {
	t.Helper()
	b.open(t)
	b.topic(t, "orders", 2, nil)
	b.topic(t, "orders.dlq", 2, map[string]string{"retention.ms": "1209600000"})
	b.topic(t, "orders.dlq.ledger", 2, map[string]string{"cleanup.policy": "compact"})
	failed := func(partition int32, ago time.Duration, offset int64, group, class, print, message string) *kgo.Record {
		return letter("orders.dlq", partition, ago, headers.Meta{
			Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: partition, Offset: offset, Timestamp: clitest.Noon.Add(-ago)},
			Group:    group, Attempts: 3, Class: class, Fingerprint: print, Reason: headers.ReasonExhausted, Message: message,
		})
	}
	b.produce(t,
		failed(0, 5*time.Hour, 1, "billing", "http.503", "00000000000000aa", "gone already"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, time.Hour, 3, "billing", "http.503", "00000000000000aa", "timeout"),
		failed(1, 3*time.Hour, 1, "mail", "decode", "00000000000000bb", "bad JSON"),
		failed(1, 2*time.Hour, 2, "mail", "decode", "00000000000000cc", "no JSON"),
		&kgo.Record{Topic: "orders.dlq", Partition: 1, Timestamp: clitest.Noon.Add(-time.Hour), Value: []byte("foreign")},
	)
	b.note(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon.Add(-time.Minute), By: "ada", Why: "paid\x1b[2J by hand"})
	return b
}

// note writes an entry about a letter of orders.dlq.
func (b *broker) note(t *testing.T, partition int32, offset int64, e dlq.Entry) {
	t.Helper()
	b.produce(t, e.Record("orders.dlq.ledger", partition, offset))
}

func someTopics(t *testing.T) *broker {
	t.Helper()
	b := newBroker(t).open(t)
	b.topic(t, "orders", 3, nil)
	b.topic(t, "orders.dlq", 3, map[string]string{"retention.ms": "1209600000"})
	b.topic(t, "orders.dlq.ledger", 3, nil)
	b.topic(t, "orders.retry.5s", 3, nil)
	b.topic(t, "orders.retry.30s", 3, nil)
	b.topic(t, "audit.dlq", 1, map[string]string{"retention.ms": "-1"}) // its source is gone
	b.topic(t, "payments", 1, nil)
	b.topic(t, "payments.dlq", 1, map[string]string{"retention.ms": "3600000"})
	b.produce(t,
		letter("orders.dlq", 0, 24*time.Hour, headers.Meta{Class: "http.503"}),
		letter("orders.dlq", 0, 30*time.Minute, headers.Meta{Class: "http.503"}),
		letter("orders.dlq", 1, time.Hour, headers.Meta{Class: "decode"}), // just within
		letter("orders.dlq", 2, 61*time.Minute, headers.Meta{Class: "decode"}),
		letter("payments.dlq", 0, 2*time.Hour, headers.Meta{}), // due to expire an hour ago
		letter("orders.retry.5s", 0, 0, headers.Meta{}), letter("orders.retry.5s", 0, 0, headers.Meta{}),
		letter("orders.retry.5s", 1, 0, headers.Meta{}),
	)
	// billing has a committed offset on two partitions of one tier. No group has one on the other
	// tier.
	b.commit(t, "billing", "orders.retry.5s", 0, 1)
	b.commit(t, "billing", "orders.retry.5s", 2, 0)
	b.commit(t, "other", "orders", 0, 0)
	return b
}
