package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/quota"
	"github.com/sidingkafka/siding/internal/client"
)

// clientFactory makes the franz-go clients. Three of them share the user's options: the group's
// member for the sources, one that reads the retry partitions directly, and one that writes copies.
// The first large copy makes a fourth, which writes large copies one at a time, and the first that
// is refused alone a fifth. On each client, siding's overridable defaults come first, then the
// user's options, then those that siding owns.
type clientFactory struct {
	cfg       *Config
	ctx       context.Context // ends all requests of all clients
	groupCtx  context.Context // ends those of the group client
	warnings  *clientWarnings
	limits    *forward.BatchLimits
	throttles *quota.Throttles
	user      *kgo.Client // the retry client, from which the user's options are read
}

// fetchWait is how long an idle fetch waits for records. An added or resumed partition waits for
// the fetch in progress: with kgo's 5 s, a lane that paused for a moment would be delayed that
// long.
const fetchWait = 250 * time.Millisecond

// groupClient makes the member of the group, which reads the sources.
func (f *clientFactory) groupClient(callbacks ...kgo.Opt) (*kgo.Client, error) {
	return client.New(f.options([]kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(fetchWait),
	}, append(callbacks,
		kgo.WithContext(f.groupCtx),
		kgo.ConsumerGroup(f.cfg.Group),
		kgo.ConsumeTopics(f.cfg.Topics...),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // see Consumer.move
		kgo.KeepControlRecords(),                    // see withoutMarkers
		kgo.DisableAutoCommit(),
	))...)
}

// retryFetch bounds a response to the retry client, which is read on top of the budget for parked
// records.
const retryFetch = 2 << 20

// retryClient makes the client that reads the tiers. It reads committed records only, because
// redrive writes in transactions.
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

// producerClient makes the client that writes copies. A copy's partition is its record's.
func (f *clientFactory) producerClient() (*kgo.Client, error) {
	users, _ := f.user.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)
	return client.New(f.producerOptions(kgo.ProducerBatchMaxBytesFn(f.limits.Within(users)))...)
}

// singleClient makes the client for large copies, each in a batch of its own. Before compression,
// only the size of a request bounds them: kgo.BrokerMaxWriteBytes, 100 MiB by default. A broker
// closes the connection at a larger one (socket.request.max.bytes, by default the same). The user's
// kgo.ProducerBatchMaxBytes does not apply: it is for batches of several records. Nor does the
// user's codec: the record may fit into its source by a stronger one.
func (f *clientFactory) singleClient() (*kgo.Client, error) { return f.clientFor(client.Strongest()) }

// tightClient makes the client for copies that their topic refused when they were alone.
func (f *clientFactory) tightClient() (*kgo.Client, error) { return f.clientFor(client.Tightest()) }

func (f *clientFactory) clientFor(codec kgo.Opt) (*kgo.Client, error) {
	limit, _ := f.user.OptValue(kgo.BrokerMaxWriteBytes).(int32)
	return client.New(f.producerOptions(kgo.ProducerBatchMaxBytes(limit), kgo.ProducerLinger(0), codec)...)
}

func (f *clientFactory) producerOptions(more ...kgo.Opt) []kgo.Opt {
	before, behind := f.headerKeepers()
	return f.options([]kgo.Opt{
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(time.Second),
		before,
	}, append(more,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(1<<20), // above the sum of the lanes' bounds
		behind,
	))
}

func (f *clientFactory) options(defaults, owned []kgo.Opt) []kgo.Opt {
	opts := append([]kgo.Opt{
		kgo.SoftwareNameAndVersion("siding", softwareVersion()),
		kgo.WithLogger(clientLog{kslog.New(f.cfg.Logger), f.warnings}),
		kgo.WithHooks(f.throttles),
	}, defaults...)
	// If the user's context ended, it would close the clients before the drain is over.
	return append(append(append(opts, f.cfg.Kafka...), kgo.WithContext(f.ctx)), owned...)
}

// headerKeepers returns the producer's hooks before and after those of the user, if there are any.
// The user's hooks may change a copy's headers; a tracer adds its own span. The record's own trace
// headers are kept nevertheless.
func (f *clientFactory) headerKeepers() (before, behind kgo.Opt) {
	hooks, _ := f.user.OptValue(kgo.WithHooks).([]kgo.Hook)
	if !slices.ContainsFunc(hooks, func(h kgo.Hook) bool { return h != kgo.Hook(f.throttles) }) {
		return kgo.WithHooks(), kgo.WithHooks()
	}
	return kgo.WithHooks(forward.HeaderLender{}), kgo.WithHooks(forward.HeaderKeeper{})
}
