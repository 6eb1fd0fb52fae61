package roottest

// An embedded broker of the tests, and the topics and letters that it holds.

import (
	"context"
	"net"
	"os"
	"regexp"
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

// Broker is an embedded cluster of a test.
type Broker struct {
	*kfake.Cluster
	Addr  string
	Dial  func(ctx context.Context, network, host string) (net.Conn, error) // nil is TCP
	Admin *kadm.Client
	kafka *kgo.Client
}

// NewBroker starts an embedded cluster of one broker, on TCP.
func NewBroker(t *testing.T, opts ...kfake.Opt) *Broker {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &Broker{Cluster: c, Addr: strings.Join(c.ListenAddrs(), ",")}
}

// InMemory is NewBroker on a network in memory, for a test in virtual time.
func InMemory(t *testing.T, opts ...kfake.Opt) *Broker {
	t.Helper()
	var network kfake.VirtualNetwork
	b := NewBroker(t, append(opts, kfake.ListenFn(network.Listen), kfake.Ports(9092))...)
	bubble.Recode(b.Cluster)
	b.Dial = network.DialContext
	return b
}

// Client makes a client that writes to the partition that a record names.
func (b *Broker) Client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.ListenAddrs()...), kgo.Dialer(b.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Open makes the test's own clients.
func (b *Broker) Open(t *testing.T, opts ...kgo.Opt) *Broker {
	t.Helper()
	b.kafka = b.Client(t, opts...)
	b.Admin = kadm.NewClient(b.kafka)
	return b
}

// Topic creates a topic.
func (b *Broker) Topic(t *testing.T, name string, partitions int32, configs map[string]string) {
	t.Helper()
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = &v
	}
	if _, err := b.Admin.CreateTopic(t.Context(), partitions, 1, values, name); err != nil {
		t.Fatal(err)
	}
}

// Produce writes records.
func (b *Broker) Produce(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	if err := b.kafka.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// Letter is a dead letter that failed some time before noon.
func Letter(topic string, partition int32, ago time.Duration, m headers.Meta) *kgo.Record {
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

// Commit commits a group's offset on a partition.
func (b *Broker) Commit(t *testing.T, group, topic string, partition int32, at int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	if _, err := b.Admin.CommitOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// DeleteTo deletes the records of a partition below an offset, as retention would.
func (b *Broker) DeleteTo(t *testing.T, topic string, partition int32, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset})
	r, err := b.Admin.DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// OpenLetters are the places of the letters that are open.
func (b *Broker) OpenLetters(t *testing.T) string {
	t.Helper()
	return strings.Join(Places(t, b.Redrive(t, "list", "orders.dlq", "-o", "jsonl")), " ")
}

// WantOpen checks which letters are open.
func (b *Broker) WantOpen(t *testing.T, want string) {
	t.Helper()
	if got := b.OpenLetters(t); got != want {
		t.Errorf("open are %s, want %s", got, want)
	}
}

// Content is the part of a letter that must not change.
type Content struct {
	Offset     int64
	Key, Value []byte
	Headers    []kgo.RecordHeader
}

// Hold returns the content of all letters of a dead-letter topic.
func (b *Broker) Hold(t *testing.T, topic string) map[int32][]Content {
	t.Helper()
	held := map[int32][]Content{}
	for l, err := range dlq.Read(t.Context(), topic, dlq.Filter{}, dlq.Cursor{}, kgo.SeedBrokers(b.ListenAddrs()...)) {
		if err != nil {
			t.Fatal(err)
		}
		r := l.Record
		held[r.Partition] = append(held[r.Partition], Content{r.Offset, r.Key, r.Value, r.Headers})
	}
	return held
}

// WantHeld checks the content of all letters of a dead-letter topic.
func (b *Broker) WantHeld(t *testing.T, topic string, want map[int32][]Content) {
	t.Helper()
	if diff := cmp.Diff(want, b.Hold(t, topic)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", topic, diff)
	}
}

// As returns an invocation by a user of a guarded broker, whose password is the user's name.
func (b *Broker) As(user string) Invocation {
	return Invocation{Now: time.Now, Env: map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_SASL": "PLAIN", "SIDING_SASL_USER": user, "SIDING_SASL_PASSWORD": user}}
}

// Aftermath is a dead-letter topic with letters of two groups, a copy, one that siding did not
// write, and one that was discarded: of 7 letters 5 are open.
func Aftermath(t *testing.T, opts ...kfake.Opt) *Broker {
	t.Helper()
	return NewBroker(t, opts...).Aftermath(t)
}

// Aftermath gives a broker the topics of that name.
func (b *Broker) Aftermath(t *testing.T) *Broker {
	t.Helper()
	b.Open(t)
	b.Topic(t, "orders", 2, nil)
	b.Topic(t, "orders.dlq", 2, map[string]string{"retention.ms": "1209600000"})
	b.Topic(t, "orders.dlq.ledger", 2, map[string]string{"cleanup.policy": "compact"})
	failed := func(partition int32, ago time.Duration, offset int64, group, class, print, message string) *kgo.Record {
		return Letter("orders.dlq", partition, ago, headers.Meta{
			Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: partition, Offset: offset, Timestamp: clitest.Noon.Add(-ago)},
			Group:    group, Attempts: 3, Class: class, Fingerprint: print, Reason: headers.ReasonExhausted, Message: message,
		})
	}
	b.Produce(t,
		failed(0, 5*time.Hour, 1, "billing", "http.503", "00000000000000aa", "gone already"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, time.Hour, 3, "billing", "http.503", "00000000000000aa", "timeout"),
		failed(1, 3*time.Hour, 1, "mail", "decode", "00000000000000bb", "bad JSON"),
		failed(1, 2*time.Hour, 2, "mail", "decode", "00000000000000cc", "no JSON"),
		&kgo.Record{Topic: "orders.dlq", Partition: 1, Timestamp: clitest.Noon.Add(-time.Hour), Value: []byte("foreign")},
	)
	b.Record(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon.Add(-time.Minute), By: "ada", Why: "paid\x1b[2J by hand"})
	return b
}

// Record writes an entry about a letter of orders.dlq.
func (b *Broker) Record(t *testing.T, partition int32, offset int64, e dlq.Entry) {
	t.Helper()
	b.Produce(t, e.Record("orders.dlq.ledger", partition, offset))
}

// SomeTopics is a broker with three dead-letter topics. One of them has no source any more.
func SomeTopics(t *testing.T) *Broker {
	t.Helper()
	b := NewBroker(t).Open(t)
	b.Topic(t, "orders", 3, nil)
	b.Topic(t, "orders.dlq", 3, map[string]string{"retention.ms": "1209600000"})
	b.Topic(t, "orders.dlq.ledger", 3, nil)
	b.Topic(t, "orders.retry.5s", 3, nil)
	b.Topic(t, "orders.retry.30s", 3, nil)
	b.Topic(t, "audit.dlq", 1, map[string]string{"retention.ms": "-1"}) // its source is gone
	b.Topic(t, "payments", 1, nil)
	b.Topic(t, "payments.dlq", 1, map[string]string{"retention.ms": "3600000"})
	b.Produce(t,
		Letter("orders.dlq", 0, 24*time.Hour, headers.Meta{Class: "http.503"}),
		Letter("orders.dlq", 0, 30*time.Minute, headers.Meta{Class: "http.503"}),
		Letter("orders.dlq", 1, time.Hour, headers.Meta{Class: "decode"}), // just within
		Letter("orders.dlq", 2, 61*time.Minute, headers.Meta{Class: "decode"}),
		Letter("payments.dlq", 0, 2*time.Hour, headers.Meta{}), // due to expire an hour ago
		Letter("orders.retry.5s", 0, 0, headers.Meta{}), Letter("orders.retry.5s", 0, 0, headers.Meta{}),
		Letter("orders.retry.5s", 1, 0, headers.Meta{}),
	)
	// billing has a committed offset on two partitions of one tier. No group has one on the other
	// tier.
	b.Commit(t, "billing", "orders.retry.5s", 0, 1)
	b.Commit(t, "billing", "orders.retry.5s", 2, 0)
	b.Commit(t, "other", "orders", 0, 0)
	return b
}

// NoteDiscards writes notes of discarded records, each an hour older than the one before.
func (b *Broker) NoteDiscards(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		note := dlq.DiscardNote{
			Group: "billing", Offset: int64(100 + i), Original: headers.Position{Topic: "orders", Offset: int64(100 + i)},
			Class: []string{"sku.Unknown", "sku.Old", "expired"}[i%3], Attempts: 1 + i%3, At: clitest.Noon.Add(-time.Duration(i+1) * time.Hour),
		}
		b.Produce(t, note.Record("orders.dlq.ledger"))
	}
}

// Redrive runs a command on the broker.
func (b *Broker) Redrive(t *testing.T, args ...string) Result {
	t.Helper()
	return Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Dial: b.Dial}.Run(t, args...)
}

// ACLOn is a permission on a topic.
func ACLOn(topic string, op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

// Guarded is a broker with letters of group billing, which has a member, and with a user ann, to
// whom the given permissions are granted.
func Guarded(t *testing.T, permissions []kfake.ACL) *Broker {
	t.Helper()
	admin := kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism())
	b := NewBroker(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "ann", "ann", permissions...)).Open(t, admin)
	for _, topic := range []string{"orders", "orders.retry.5s", "orders.dlq.ledger"} {
		b.Topic(t, topic, 1, nil)
	}
	// Its letters are as old as noon.
	b.Topic(t, "orders.dlq", 1, map[string]string{"retention.ms": "-1"})
	// A resolved letter, an open one, and a copy of the first. The ledger gets an entry about the
	// copy when the first letter is pruned.
	for _, offset := range []int64{7, 8, 7} {
		b.Produce(t, Letter("orders.dlq", 0, 0, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Original: headers.Position{Topic: "orders", Offset: offset, Timestamp: clitest.Noon}}))
	}
	b.Record(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada", Why: "x"})
	joined := make(chan struct{})
	member := b.Client(t, admin, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
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

// Kind is the kind of a resource, as errors name it.
func Kind(r kmsg.ACLResourceType) string {
	switch r {
	case kmsg.ACLResourceTypeGroup:
		return "group"
	case kmsg.ACLResourceTypeTransactionalId:
		return "transactional-id"
	}
	return "topic"
}

// DocumentedPermissions reads a column of the table.
func DocumentedPermissions(t *testing.T, column int) (permissions []kfake.ACL) {
	t.Helper()
	text, err := os.ReadFile("../../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### Permissions for redriving\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := regexp.MustCompile("^ (group|topic|transactional id) `([^`]+)`")
	operation := regexp.MustCompile("`([A-Z_]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			continue
		}
		of := named.FindStringSubmatch(cells[1])
		if of == nil {
			continue
		}
		resource := map[string]kmsg.ACLResourceType{"topic": kmsg.ACLResourceTypeTopic, "group": kmsg.ACLResourceTypeGroup, "transactional id": kmsg.ACLResourceTypeTransactionalId}[of[1]]
		for _, m := range operation.FindAllStringSubmatch(cells[2+column], -1) {
			op, err := kmsg.ParseACLOperation(m[1])
			if err != nil {
				t.Fatal(err)
			}
			permissions = append(permissions, kfake.ACL{Resource: resource, Name: of[2], Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
		}
	}
	if len(permissions) == 0 {
		t.Fatal("the table has no permissions")
	}
	return permissions
}
