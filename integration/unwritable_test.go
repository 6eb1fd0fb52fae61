package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration"
)

// line is a source of two partitions with its siblings, and a consumer whose lane 1 will be
// blocked.
type line struct {
	*consumertest.Kafka
	*consumertest.Consumer
	t       *testing.T
	admin   *kadm.Client
	topic   string
	group   string
	value   string // of failing records: "bad" fails for good, "busy" once
	copies  string // the topic of their copies
	failing []*kgo.Record
	gone    bool // records were deleted with their topic
}

func newLine(t *testing.T, kafka *integration.Kafka, topic, value string) *line {
	t.Helper()
	k := consumertest.On(t, append(kafka.Opts(), kgo.HeartbeatInterval(500*time.Millisecond))...)
	k.Patience = 2 * time.Minute // a broker needs time to restart
	copies := map[string]string{"bad": topic + ".dlq", "busy": topic + ".retry.1s"}[value]
	l := &line{Kafka: k, t: t, admin: kadm.NewClient(client(t, kafka)), topic: topic, value: value, copies: copies}
	l.group = l.groupApart(3)
	return l
}

// groupApart returns a group whose coordinator is on another broker: a group that loses its
// coordinator runs uncommitted records again.
func (l *line) groupApart(node int32) string {
	l.t.Helper()
	for i := 0; ; i++ {
		group := fmt.Sprintf("billing-%s-%d", l.topic, i)
		var co kadm.FindCoordinatorResponse
		eventually(l.t, l.Patience, func() error { // the first request creates the topic of offsets
			co = l.admin.FindGroupCoordinators(l.t.Context(), group)[group]
			return co.Err
		})
		if co.NodeID != node {
			return group
		}
	}
}

// make creates a topic whose partitions have these replicas.
func (l *line) make(topic string, minISR int, replicas ...[]int32) {
	l.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, -1, -1
	for p, nodes := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(p), nodes
		rt.ReplicaAssignment = append(rt.ReplicaAssignment, a)
	}
	c, value := kmsg.NewCreateTopicsRequestTopicConfig(), fmt.Sprint(minISR)
	c.Name, c.Value = "min.insync.replicas", &value
	rt.Configs = append(rt.Configs, c)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(l.t.Context(), client(l.t, l))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		l.t.Fatalf("create %s: %v", topic, err)
	}
	// The controller informs each broker of a new topic with a delay.
	eventually(l.t, l.Patience, func() error {
		all, err := l.admin.ListTopics(l.t.Context(), topic)
		if err = errors.Join(err, all[topic].Err); err == nil && len(all[topic].Partitions) != len(replicas) {
			err = fmt.Errorf("topic %s has %d partitions", topic, len(all[topic].Partitions))
		}
		return err
	})
}

// start runs the consumer.
func (l *line) start() {
	l.t.Helper()
	l.Consumer = l.Run(consumer.Config{
		Group: l.group, Topics: []string{l.topic}, CommitInterval: 100 * time.Millisecond,
		Policy: consumer.Policy{Tiers: []time.Duration{time.Second}},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			switch {
			case string(r.Value) == "bad":
				return errors.New("no such SKU")
			case string(r.Value) == "busy" && consumer.DeliveryOf(ctx, r).Attempt == 1:
				return classify.Retryable(errors.New("busy"))
			}
			return nil
		},
	})
}

func (l *line) produce(partition int32, value string) *kgo.Record {
	l.t.Helper()
	return l.Produce(&kgo.Record{Topic: l.topic, Partition: partition, Key: key(partition), Value: []byte(value)})[0]
}

// key returns a key of a partition, of two.
func key(partition int32) []byte {
	for i := 0; ; i++ {
		if k := fmt.Append(nil, i); int32(kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(&kgo.Record{Key: k}, 2)) == partition {
			return k
		}
	}
}

// fail produces failing records on partition 1.
func (l *line) fail(n int) {
	l.t.Helper()
	for range n {
		l.failing = append(l.failing, l.produce(1, l.value))
	}
}

// done waits until a failed record is where it belongs.
func (l *line) done(r *kgo.Record) {
	l.t.Helper()
	if l.value == "bad" {
		l.DeadLettered(r, headers.ReasonTerminal)
		return
	}
	l.Handled(r, 1)
}

// othersGoOn lets a record fail on partition 0 and waits until it is finished.
func (l *line) othersGoOn() {
	l.t.Helper()
	l.Handled(l.produce(0, "fine"), 1)
	r := l.produce(0, l.value)
	l.done(r)
	l.failing = append(l.failing, r)
}

// blocked waits until lane 1 is blocked with a reason that names the fault, while lane 0 runs.
func (l *line) blocked(why string) {
	l.t.Helper()
	eventually(l.t, l.Patience, func() error {
		h := l.Health()
		if len(h.Lanes) == 2 && !h.OK && h.Lanes[1].State == consumer.StateBlocked && strings.Contains(h.Lanes[1].Why, why) && h.Lanes[0].State != consumer.StateBlocked {
			return nil
		}
		return fmt.Errorf("health is %+v, want lane 1 blocked with %q in its reason, and lane 0 not", h, why)
	})
}

// untilRefused produces failing records until a copy is refused. A broker accepts copies until it
// learns that the topic is deleted; these are lost with the topic.
func (l *line) untilRefused() {
	l.t.Helper()
	eventually(l.t, l.Patience, func() error {
		lane := l.Health().Lanes[1]
		switch last := len(l.failing) - 1; {
		case lane.State == consumer.StateBlocked:
			l.failing = l.failing[last:]
			return nil
		case lane.Offsets[0].Committed > l.failing[last].Offset:
			l.fail(1)
		}
		return fmt.Errorf("every copy is taken on %s, which was deleted; health is %+v", l.copies, l.Health())
	})
}

// over waits until all records are finished, counts the copies, one for each, and ends the
// consumer.
func (l *line) over() {
	l.t.Helper()
	for _, r := range l.failing {
		l.done(r)
	}
	if !l.gone {
		l.Conserved()
	}
	ends, err := l.admin.ListEndOffsets(l.t.Context(), l.copies)
	must(l.t, err)
	var n int
	ends.Each(func(o kadm.ListedOffset) { n += int(o.Offset) })
	if n != len(l.failing) {
		l.t.Errorf("%d copies on %s, want %d, one of each", n, l.copies, len(l.failing))
	}
	eventually(l.t, l.Patience, func() error {
		if h := l.Health(); !h.OK {
			return fmt.Errorf("health stays %+v", h)
		}
		return nil
	})
	if err := l.Stop(); err != nil {
		l.t.Error(err)
	}
}

// Trap 21: a retry or dead-letter topic has too few in-sync replicas, or no leader, and the record
// is lost or doubled.
//
// Its lane waits until the broker is back, and the other goes on. That a broker is away means what
// tests of durability rely on: see trio.
func TestCopiesWaitForBrokersThatAreDown(t *testing.T) {
	t.Parallel()
	kafka := ownKafka(t, integration.WithBrokers(3), // that notice soon that one is away:
		integration.WithConfig("broker.session.timeout.ms", "4000"), integration.WithConfig("broker.heartbeat.interval.ms", "500"))
	three := newTrio(t, kafka)
	for _, fault := range []struct {
		name        string
		begin, over func(testing.TB, int)
	}{
		{"killed", kafka.Kill, kafka.Restart},
		{"paused", kafka.Pause, kafka.Unpause},
	} {
		t.Run(fault.name, func(t *testing.T) {
			three.t = t
			// Four lines meet the fault together: it removes the leader or a replica of partition 1
			// of their retry or dead-letter topic.
			var lines []*line
			for _, value := range []string{"bad", "busy"} {
				for what, replicas := range map[string][][]int32{"leader": {{1}, {3}}, "replica": {{1, 2}, {1, 3}}} {
					l := newLine(t, kafka, fault.name+"-"+value+"-"+what, value)
					l.make(l.topic, 2, []int32{1, 2, 3}, []int32{1, 2, 3})
					l.make(l.copies, len(replicas[1]), replicas...)
					l.start()
					l.fail(1)
					l.done(l.failing[0]) // the producer knows the topic
					lines = append(lines, l)
				}
			}
			fault.begin(t, 3)
			for _, l := range lines {
				l.fail(10)
			}
			for _, l := range lines {
				l.blocked("in-sync replicas")
				l.othersGoOn()
			}
			three.oneIsAway(fault.name)
			fault.over(t, 3)
			three.allAreBack(fault.name)
			for _, l := range lines {
				l.over()
			}
		})
	}
}

// Trap 21: the dead-letter topic is missing.
func TestCopiesWaitForATopicThatIsMadeAnew(t *testing.T) {
	t.Parallel()
	l := newLine(t, shared.Kafka(t), "recreated", "bad")
	one := []int32{1}
	l.make(l.topic, 1, one, one)
	l.start()
	l.fail(1)
	l.done(l.failing[0])
	if _, err := l.admin.DeleteTopic(t.Context(), l.copies); err != nil {
		t.Fatal(err)
	}
	l.gone = true
	l.untilRefused()
	l.fail(9)
	l.blocked(l.copies + ": UNKNOWN_TOPIC")
	l.Handled(l.produce(0, "fine"), 1)
	l.make(l.copies, 1, one, one)
	for _, r := range l.failing {
		l.done(r)
	}
	l.othersGoOn()
	l.over()
}

// Trap 21: the retry or dead-letter topic may not be written to.
func TestCopiesWaitForTheRightToWriteThem(t *testing.T) {
	t.Parallel()
	kafka := denying.Kafka(t)
	one := []int32{1}
	var lines []*line
	for _, value := range []string{"bad", "busy"} {
		l := newLine(t, kafka, "forbidden-"+value, value)
		l.make(l.topic, 1, one, one)
		l.start()
		l.fail(1)
		l.done(l.failing[0])
		lines = append(lines, l)
	}
	denied := func(l *line) *kadm.ACLBuilder {
		return kadm.NewACLs().Deny("User:ANONYMOUS").DenyHosts("*").Topics(l.copies).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpWrite)
	}
	for _, l := range lines {
		allowed := kadm.NewACLs().Allow("User:ANONYMOUS").AllowHosts("*").Topics(l.copies).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpAll)
		// A resource with a rule denies all that no rule allows.
		for _, acl := range []*kadm.ACLBuilder{allowed, denied(l)} {
			rs, err := l.admin.CreateACLs(t.Context(), acl)
			for _, r := range rs {
				err = errors.Join(err, r.Err)
			}
			must(t, err)
		}
		l.fail(10)
	}
	for _, l := range lines {
		l.blocked(l.copies + ": TOPIC_AUTHORIZATION_FAILED")
		l.Handled(l.produce(0, "fine"), 1)
	}
	for _, l := range lines {
		if rs, err := l.admin.DeleteACLs(t.Context(), denied(l)); err != nil || rs[0].Err != nil {
			t.Fatal(err, rs)
		}
	}
	for _, l := range lines {
		for _, r := range l.failing {
			l.done(r)
		}
		l.othersGoOn()
		l.over()
	}
}

// trio is a cluster of three, on which the tests of durability rely. Writes continue with one
// broker dead. A topic that requires more replicas than are left refuses writes. Both recover once
// the broker is back.
type trio struct {
	t             *testing.T
	cl, impatient *kgo.Client
}

// newTrio checks that all brokers take records.
func newTrio(t *testing.T, kafka *integration.Kafka) *trio {
	t.Helper()
	// By default a client retries a record without end while a frozen broker withholds its outcome,
	// since a second write could duplicate it. Here a duplicate does no harm.
	mortal := []kgo.Opt{kgo.AllowIdempotentProduceCancellation(), kgo.MetadataMinAge(100 * time.Millisecond), kgo.UnknownTopicRetries(-1)}
	k := &trio{t, client(t, kafka, mortal...), client(t, kafka, append(mortal, kgo.RecordRetries(1))...)}
	adm := kadm.NewClient(k.cl)
	minISR := func(n string) map[string]*string { return map[string]*string{"min.insync.replicas": &n} }
	for topic, config := range map[string]map[string]*string{"two": minISR("2"), "three": minISR("3")} {
		if _, err := adm.CreateTopic(t.Context(), 3, 3, config, topic); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{"two", "three"} {
		if err := k.write(topic); err != nil {
			t.Fatalf("all brokers up: %s: %v", topic, err)
		}
	}
	return k
}

func (k *trio) write(topic string) error {
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	return k.cl.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr()
}

// oneIsAway checks what the two brokers that are left take.
func (k *trio) oneIsAway(why string) {
	k.t.Helper()
	if err := k.write("two"); err != nil {
		k.t.Errorf("broker 3 %s: two in-sync replicas are enough for topic two: %v", why, err)
	}
	// The other brokers remove the missing one from the in-sync set first, so the test writes until
	// they refuse.
	err := refusal(k.t, k.impatient, "three")
	if !errors.Is(err, kerr.NotEnoughReplicas) && !errors.Is(err, kerr.NotEnoughReplicasAfterAppend) {
		k.t.Errorf("broker 3 %s: topic three wants three in-sync replicas, yet got %v", why, err)
	}
}

// allAreBack checks that all brokers take records again.
func (k *trio) allAreBack(why string) {
	k.t.Helper()
	if err := k.write("three"); err != nil {
		k.t.Errorf("broker 3 no longer %s: %v", why, err)
	}
}

// refusal writes to a topic until a broker refuses a record, and returns the reason, or the last
// error when the time is over.
func refusal(t *testing.T, cl *kgo.Client, topic string) (err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		err = cl.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr()
		if errors.Is(err, kerr.NotEnoughReplicas) || errors.Is(err, kerr.NotEnoughReplicasAfterAppend) {
			break
		}
	}
	return err
}
