package consumer

import (
	"context"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/internal/client"
)

// clientFactory makes the clients. Three clients share the user's options: one in the group for the
// sources, one that reads the retry partitions directly, one that writes copies. A fourth writes
// large copies one at a time; it is made when there is one. On each, siding's changeable defaults
// come first, then the user's options, then what siding owns.
type clientFactory struct {
	cfg      *Config
	throttle *logthrottle.Throttle
	limits   *forward.BatchLimits
	user     *kgo.Client // the retry client, from which the user's options are read
}

// fetchWait is how long an idle fetch waits for records. A partition that is added or resumed waits
// for the fetch under way, which with kgo's 5 s would hold up a lane that paused for a moment.
const fetchWait = 250 * time.Millisecond

// groupClient is the member of the group, and reads the sources. The callbacks are the consumer's.
func (f *clientFactory) groupClient(callbacks ...kgo.Opt) (*kgo.Client, error) {
	return client.New(f.options([]kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(fetchWait),
	}, append(callbacks,
		kgo.ConsumerGroup(f.cfg.Group),
		kgo.ConsumeTopics(f.cfg.Topics...),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // see Consumer.move
		kgo.KeepControlRecords(),                    // see withoutMarkers
		kgo.DisableAutoCommit(),
	))...)
}

// retryFetch bounds an answer to the retry client: what is read besides the budget for parked
// records.
const retryFetch = 2 << 20

// retryClient reads the tiers, always read committed, since redrive writes in transactions.
func (f *clientFactory) retryClient() (_ *kgo.Client, err error) {
	f.user, err = client.New(f.options([]kgo.Opt{
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxBytes(retryFetch),
		kgo.MetadataMinAge(time.Second),
	}, []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
	})...)
	return f.user, err
}

// producerClient writes copies to the partition that the record has for life.
func (f *clientFactory) producerClient() (*kgo.Client, error) {
	users, _ := f.user.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)
	return client.New(f.producerOptions(kgo.ProducerBatchMaxBytesFn(f.limits.Within(users)))...)
}

// singleClient writes copies that are large, each in a batch of its own. How long a request may be
// is all that bounds them before compression (kgo.BrokerMaxWriteBytes, 100 MiB by default like the
// brokers' socket.request.max.bytes, beyond which these hang up); the user's
// kgo.ProducerBatchMaxBytes is for batches, and a record that is larger has one of its own.
func (f *clientFactory) singleClient() (*kgo.Client, error) {
	limit, _ := f.user.OptValue(kgo.BrokerMaxWriteBytes).(int32)
	return client.New(f.producerOptions(kgo.ProducerBatchMaxBytes(limit), kgo.ProducerLinger(0))...)
}

func (f *clientFactory) producerOptions(more ...kgo.Opt) []kgo.Opt {
	before, behind := f.headerKeepers()
	return f.options([]kgo.Opt{
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(time.Second),
		before,
	}, append(more,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(1<<20), // beyond what the lanes' bounds let through
		behind,
	))
}

func (f *clientFactory) options(defaults, owned []kgo.Opt) []kgo.Opt {
	opts := append([]kgo.Opt{
		kgo.SoftwareNameAndVersion("siding", softwareVersion()),
		kgo.WithLogger(clientLog{kslog.New(f.cfg.Logger), f.throttle}),
	}, defaults...)
	// A context of the user's that ends would take the clients away before the drain is over.
	return append(append(append(opts, f.cfg.Kafka...), kgo.WithContext(context.Background())), owned...)
}

// headerKeepers are the producer's hooks before and behind those of the user, where there are any:
// whatever these do to a copy's headers (a tracer puts its own span in), the record's own trace
// headers go on as they came.
func (f *clientFactory) headerKeepers() (before, behind kgo.Opt) {
	if reflect.ValueOf(f.user.OptValue(kgo.WithHooks)).Len() == 0 {
		return kgo.WithHooks(), kgo.WithHooks()
	}
	return kgo.WithHooks(forward.HeaderLender{}), kgo.WithHooks(forward.HeaderKeeper{})
}
