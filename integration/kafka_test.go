package integration_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration"
)

// Siding can keep its promises about keys, values and headers only because Kafka keeps them. A
// broker with wrong settings (a compacting or recompressing topic, another timestamp type) would
// not.
func TestRecordsComeBackAsProduced(t *testing.T) {
	t.Parallel()
	kafka := shared.Kafka(t)
	topic := createTopic(t, kafka, 1)

	at := time.UnixMilli(1_700_000_000_123)
	want := []*kgo.Record{
		{Key: []byte("k"), Value: []byte("v")},
		{Key: nil, Value: nil},
		{Key: []byte{}, Value: []byte{}},
		{Value: bytes.Repeat([]byte{0, 0xff}, 100_000)},
		{Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2")}, {Key: "", Value: nil}}},
	}
	for _, r := range want {
		r.Topic, r.Timestamp = topic, at
	}
	cl := client(t, kafka, kgo.ConsumeTopics(topic))
	must(t, cl.ProduceSync(t.Context(), want...).FirstErr())
	type shape struct {
		Key, Value []byte
		Headers    []kgo.RecordHeader
		At         int64
	}
	shapes := func(rs []*kgo.Record) (ss []shape) {
		for _, r := range rs {
			// A nil slice equals an empty one for headers, but a nil value differs from an empty
			// one.
			ss = append(ss, shape{r.Key, r.Value, append([]kgo.RecordHeader(nil), r.Headers...), r.Timestamp.UnixMilli()})
		}
		return ss
	}
	got := poll(t, cl, len(want))
	if diff := cmp.Diff(shapes(want), shapes(got)); diff != "" {
		t.Errorf("records read back (-want +got):\n%s", diff)
	}
}

func TestGroupGoesOnFromItsCommit(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p protocol) {
		kafka := shared.Kafka(t)
		topic := createTopic(t, kafka, 3)
		member := append([]kgo.Opt{kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit()}, p.opts...)

		producer := client(t, kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		produce := func(round string) {
			for part := range int32(3) {
				r := &kgo.Record{Topic: topic, Partition: part, Value: fmt.Appendf(nil, "%s-%d", round, part)}
				must(t, producer.ProduceSync(t.Context(), r).FirstErr())
			}
		}

		produce("first")
		first := client(t, kafka, member...)
		got := values(poll(t, first, 3))
		if want := (map[string]bool{"first-0": true, "first-1": true, "first-2": true}); !cmp.Equal(got, want) {
			t.Errorf("first member got %v, want %v", got, want)
		}
		must(t, first.CommitUncommittedOffsets(t.Context()))
		groups, err := kadm.NewClient(producer).ListGroupsByType(t.Context(), []string{p.groupType})
		must(t, err)
		if _, ok := groups[topic]; !ok {
			t.Errorf("no group %s of type %q", topic, p.groupType)
		}
		first.Close()

		produce("second")
		got = values(poll(t, client(t, kafka, member...), 3))
		if want := (map[string]bool{"second-0": true, "second-1": true, "second-2": true}); !cmp.Equal(got, want) {
			t.Errorf("second member got %v, want %v", got, want)
		}
	})
}

// configured are settings of a broker that are not the defaults.
type configured map[string]string

func (s configured) options() (all []integration.Option) {
	for key, value := range s {
		all = append(all, integration.WithConfig(key, value))
	}
	return all
}

// settings has one key for each form of a name: dots, and a digit that must stay. Kafka has no
// setting with a dash or an underscore; option_test.go covers these.
var settings = configured{"log.retention.ms": "12345678", "group.initial.rebalance.delay.ms": "7"}

func TestConfigReachesTheBroker(t *testing.T) {
	t.Parallel()
	kafka := denying.Kafka(t)
	got, err := kadm.NewClient(client(t, kafka)).DescribeBrokerConfigs(t.Context(), 1)
	must(t, err)
	broker, err := got.On("1", nil)
	must(t, err)
	want := maps.Clone(settings)
	for _, c := range broker.Configs {
		if w, ok := want[c.Key]; ok && c.MaybeValue() != w {
			t.Errorf("%s = %s, want %s", c.Key, c.MaybeValue(), w)
		}
		delete(want, c.Key)
	}
	if len(want) > 0 {
		t.Errorf("the broker does not know of %v", want)
	}
}

// createTopic creates a topic with a unique name, which serves as a group's name too.
func createTopic(t *testing.T, kafka *integration.Kafka, partitions int32) string {
	t.Helper()
	name := topicName(t)
	admin := kadm.NewClient(client(t, kafka, kgo.MetadataMinAge(50*time.Millisecond)))
	if _, err := admin.CreateTopic(t.Context(), partitions, -1, nil, name); err != nil {
		t.Fatal(err)
	}
	// The controller informs a broker later, on a busy machine much later. A client that asked
	// before gets an error.
	eventually(t, 2*time.Minute, func() error {
		topics, err := admin.ListTopics(t.Context(), name)
		if err = errors.Join(err, topics[name].Err); err == nil && len(topics[name].Partitions) != int(partitions) {
			err = fmt.Errorf("topic %s has %d partitions", name, len(topics[name].Partitions))
		}
		return err
	})
	return name
}

// starting is held while a test starts brokers of its own: several that start together take the CPU
// of a small machine from the shared one.
var starting sync.Mutex

// ownKafka starts a cluster that only this test uses.
func ownKafka(t *testing.T, opts ...integration.Option) *integration.Kafka {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	return integration.StartKafka(t, opts...)
}

// topicName returns a name that begins with the test's name and differs in each run.
func topicName(t *testing.T) string {
	return strings.ReplaceAll(t.Name(), "/", "-") + "-" + strings.ToLower(rand.Text()[:8])
}

func client(t *testing.T, kafka interface{ Opts() []kgo.Opt }, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(kafka.Opts(), opts...)...)
	must(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// poll reads until it has n records, and fails the test if they do not come.
func poll(t *testing.T, cl *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []*kgo.Record
	for len(got) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("poll, %d of %d records read: %v", len(got), n, err)
		}
		got = append(got, fetches.Records()...)
	}
	return got
}

func values(rs []*kgo.Record) map[string]bool {
	got := make(map[string]bool, len(rs))
	for _, r := range rs {
		got[string(r.Value)] = true
	}
	return got
}
