package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/internal/client"
)

// Three clients share the user's options: one in the group for the sources, one that reads the retry partitions directly,
// one that writes copies; and a fourth that writes large copies one at a time, made when there is one. On each, siding's changeable defaults come first, then the user's options, then what siding owns.

// refusedOptions are kgo's options that would be silently void, since siding's own come last, or that would break a promise. kgo
// refuses some others by itself for a client without a group.
var refusedOptions = []struct{ option, why string }{
	{"ConsumerGroup", "set Config.Group"},
	{"ShareGroup", "siding consumes as a consumer group"},
	{"ConsumeTopics", "set Config.Topics"},
	{"ConsumePartitions", "partitions come from the group"},
	{"ConsumeRegex", "regex subscriptions are not offered: name the topics in Config.Topics"},
	{"ConsumeStartOffset", "set Config.Start"},
	{"ConsumeResetOffset", "siding goes to the log's start, and logs what was lost; see Config.Start for a partition without an offset"},
	{"AdjustFetchOffsetsFn", "siding decides where a partition starts; see Config.Start"},
	{"BlockRebalanceOnPoll", "siding polls while lanes drain"},
	{"AutoCommitInterval", "set Config.CommitInterval"},
	{"GroupProtocol", "siding speaks the consumer protocol"},
	{"TransactionalID", "at-least-once delivery has no transactions"},
	{"DisableIdempotentWrite", "a copy must not be written twice by a retry"},
	{"AllowIdempotentProduceCancellation", "a copy in flight cannot be cancelled safely"},
	{"RecordRetries", "a copy is repeated until it is safe"},
	{"RecordDeliveryTimeout", "a copy is repeated until it is safe"},
	{"ManualFlushing", "copies are sent as they come"},
	{"MaxBufferedRecords", "siding bounds the copies in flight, a lane at a time"},
	{"MaxBufferedBytes", "siding bounds the copies in flight, a lane at a time"},
	{"DefaultProduceTopicAlways", "copies name their topic"},
	{"WithPools", "siding keeps records beyond the poll that brought them"},
	{"AllowAutoTopicCreation", "siding provisions what it needs, with the right settings; see Config.Provision"},
}

// probe builds a client that opens no connection and logs nothing, to read options from.
func probe(opts ...kgo.Opt) (*kgo.Client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return client.New(append(slices.Clip(opts), kgo.WithContext(ctx), kgo.WithLogger(kgo.BasicLogger(io.Discard, kgo.LogLevelNone, nil)))...)
}

// clientProblems lists the user's options that siding refuses, and those that do not go together.
func clientProblems(cfg Config) (all []error) {
	if len(cfg.Kafka) == 0 {
		all = append(all, errors.New("there are no options in Kafka: name the brokers at least, kgo.SeedBrokers(…)"))
	}
	opts := slices.DeleteFunc(slices.Clone(cfg.Kafka), func(o kgo.Opt) bool { return o == nil })
	if len(opts) < len(cfg.Kafka) {
		all = append(all, errors.New("an option in Kafka is nil"))
	}
	user, err := probe(opts...)
	if err != nil {
		return append(all, fmt.Errorf("the options in Kafka: %w (leave out what siding sets itself: group, callbacks, commits, acks)", err))
	}
	defer user.Close()
	plain, err := probe()
	if err != nil {
		return append(all, err)
	}
	defer plain.Close()
	for _, o := range refusedOptions {
		if !reflect.DeepEqual(user.OptValues(o.option), plain.OptValues(o.option)) { // functions are equal where both are nil
			all = append(all, fmt.Errorf("option kgo.%s in Kafka is siding's: %s", o.option, o.why))
		}
	}
	rebalance, _ := user.OptValue(kgo.RebalanceTimeout).(time.Duration)
	if need := stuckAfter + minCommitTime; cfg.DrainTimeout >= rebalance-need {
		all = append(all, fmt.Errorf("DrainTimeout %v: with %v for stuck handlers and the last commit it must be under the rebalance timeout, %v (kgo.RebalanceTimeout)",
			cfg.DrainTimeout, need, rebalance))
	}
	return all
}

// minCommitTime is what a revoke needs for its last commit.
const minCommitTime = 2 * time.Second

// commitTimeFor is how long a commit may take: what the rebalance timeout leaves behind a drain. It takes longer where the coordinator
// accepts connections and says nothing on them. kgo's requests wait for their connection whatever becomes of their context, for
// kgo.RequestTimeoutOverhead (10 s) a try, and behind those to the same broker that came before: a minute was seen. The commit is not
// abandoned meanwhile, since the next one must not overtake it; and who is silent to a commit lets nobody join either.
func commitTimeFor(cl *kgo.Client, drain time.Duration) time.Duration {
	rebalance, _ := cl.OptValue(kgo.RebalanceTimeout).(time.Duration)
	return min(max(rebalance-drain-stuckAfter-time.Second, minCommitTime), 15*time.Second)
}

// fetchWait is how long an idle fetch waits for records. A partition that is added or resumed waits for the fetch under way,
// which with kgo's 5 s would hold up a lane that paused for a moment.
const fetchWait = 250 * time.Millisecond

// groupClient is the member of the group, and reads the sources.
func (c *Consumer) groupClient() (*kgo.Client, error) {
	return client.New(c.options([]kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(fetchWait),
	}, []kgo.Opt{
		kgo.ConsumerGroup(c.cfg.Group),
		kgo.ConsumeTopics(c.cfg.Topics...),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // see outofrange.go
		kgo.KeepControlRecords(),                    // see withoutMarkers
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(c.assigned),
		kgo.OnPartitionsRevoked(c.revoked),
		kgo.OnPartitionsLost(c.lost),
		kgo.AdjustFetchOffsetsFn(c.adjustFetchOffsets),
	})...)
}

// retryFetch bounds an answer to the retry client: what is read besides the budget for parked records.
const retryFetch = 2 << 20

// retryClient reads the tiers, always read committed, since redrive writes in transactions.
func (c *Consumer) retryClient() (*kgo.Client, error) {
	return client.New(c.options([]kgo.Opt{
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxBytes(retryFetch),
		kgo.MetadataMinAge(time.Second),
	}, []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
	})...)
}

// producerClient writes copies to the partition that the record has for life.
func (c *Consumer) producerClient() (*kgo.Client, error) {
	users, _ := c.retryCl.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)
	return client.New(c.producerOptions(kgo.ProducerBatchMaxBytesFn(c.batchLimits.Within(users)))...)
}

// singleClient writes copies that are large, each in a batch of its own. How long a request may be is all that bounds them before
// compression (kgo.BrokerMaxWriteBytes, 100 MiB by default like the brokers' socket.request.max.bytes, beyond which these hang
// up); the user's kgo.ProducerBatchMaxBytes is for batches, and a record that is larger has one of its own.
func (c *Consumer) singleClient() (*kgo.Client, error) {
	limit, _ := c.retryCl.OptValue(kgo.BrokerMaxWriteBytes).(int32)
	return client.New(c.producerOptions(kgo.ProducerBatchMaxBytes(limit), kgo.ProducerLinger(0))...)
}

func (c *Consumer) producerOptions(more ...kgo.Opt) []kgo.Opt {
	before, behind := c.headerKeepers()
	return c.options([]kgo.Opt{
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(time.Second),
		before,
	}, append(more,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(1<<20), // beyond what the lanes' bounds let through
		behind,
	))
}

func (c *Consumer) options(defaults, owned []kgo.Opt) []kgo.Opt {
	opts := append([]kgo.Opt{
		kgo.SoftwareNameAndVersion("siding", softwareVersion()),
		kgo.WithLogger(clientLog{kslog.New(c.cfg.Logger), &c.throttle}),
	}, defaults...)
	// A context of the user's that ends would take the clients away before the drain is over.
	return append(append(append(opts, c.cfg.Kafka...), kgo.WithContext(context.Background())), owned...)
}

// headerKeepers are the producer's hooks before and behind those of the user, where there are any: whatever these do to a
// copy's headers (a tracer puts its own span in), the record's own trace headers go on as they came.
func (c *Consumer) headerKeepers() (before, behind kgo.Opt) {
	if reflect.ValueOf(c.retryCl.OptValue(kgo.WithHooks)).Len() == 0 {
		return kgo.WithHooks(), kgo.WithHooks()
	}
	return kgo.WithHooks(headerLender{}), kgo.WithHooks(headerKeeper{})
}

// softwareVersion is what brokers log for client.software.version.
func softwareVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == modulePath && m.Version != "" && m.Version[0] == 'v' {
				return m.Version
			}
		}
	}
	return "devel"
}

const modulePath = "github.com/sidingkafka/siding"
