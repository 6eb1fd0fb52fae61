package tier

// Fetches evicted records again.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

const (
	// refetchTimeout bounds a request. The next one looks up the leader again.
	refetchTimeout = 10 * time.Second
	// refetchesPerBroker bounds the requests to a broker at a time, and so the answers in memory,
	// which the budget does not count. A broker that does not answer holds up only its own
	// partitions.
	refetchesPerBroker = 2
)

// ErrOutOfLog reports that a partition's log ends before the offset to read: it is no
// longer the log that was read before.
var ErrOutOfLog = errors.New("the log ends before it")

// Fetcher reads single pieces of logs. Fetch is safe for concurrent use.
type Fetcher struct {
	client  *kgo.Client
	through func() (*kgo.Client, error)
	cluster *cluster.Cluster

	decompressor kgo.Decompressor
	brokers      perBroker
}

// NewFetcher makes a fetcher. client supplies the leaders and the user's options for decompression
// and checksums. through returns the client whose connections carry the requests. cl is
// asked where logs start and end.
func NewFetcher(client *kgo.Client, through func() (*kgo.Client, error), cl *cluster.Cluster) *Fetcher {
	f := &Fetcher{client: client, through: through, cluster: cl, decompressor: kgo.DefaultDecompressor()}
	if own, ok := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor); ok && own != nil {
		f.decompressor = own
	}
	return f
}

// byName is a fetch in the last version that names topics, rather than their ids. It is needed if
// the brokers were upgraded after the lane read from them: the lane then has no topic id.
type byName struct{ *kmsg.FetchRequest }

func (byName) MaxVersion() int16 { return 12 }

// Fetch implements Fetch of [Env].
func (f *Fetcher) Fetch(ctx context.Context, p Partition, from, bytes int64) ([]*kgo.Record, int64, error) {
	got, next, err := f.fetch(ctx, p, from, bytes)
	if err != nil && !errors.Is(err, errCrowded) {
		f.client.ForceMetadataRefresh() // most likely the leader moved
	}
	return got, next, err
}

func (f *Fetcher) fetch(ctx context.Context, p Partition, from, bytes int64) ([]*kgo.Record, int64, error) {
	leader, epoch, err := f.client.PartitionLeader(p.Topic, p.Partition)
	if err != nil || leader < 0 {
		return nil, 0, errors.Join(errors.New("the client knows no leader of the partition"), err)
	}
	release, err := f.brokers.acquire(ctx, leader)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, refetchTimeout)
	defer cancel()
	through, err := f.through()
	if err != nil {
		return nil, 0, err
	}
	answer, err := through.Broker(int(leader)).RetriableRequest(ctx, request(p, epoch, from, bytes))
	if err != nil {
		return nil, 0, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, 0, errors.New("the answer is not about this partition alone")
	}
	part := &resp.Topics[0].Partitions[0]
	if errors.Is(kerr.ErrorForCode(part.ErrorCode), kerr.OffsetOutOfRange) {
		next, err := f.startBehind(ctx, p, from)
		return nil, next, err
	}
	read, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: p.Topic, Partition: p.Partition,
		DisableCRCValidation: f.client.OptValue(kgo.DisableFetchCRCValidation) == true,
	}, part, f.decompressor, nil)
	switch {
	case len(read.Records) > 0 || next > from:
	case read.Err != nil:
		return nil, 0, read.Err
	default:
		return nil, 0, errors.New("the answer contains no record")
	}
	return read.Records, next, nil
}

// request returns a fetch request for committed records.
func request(p Partition, epoch int32, from, bytes int64) kmsg.Request {
	fetch := kmsg.NewPtrFetchRequest()
	fetch.MinBytes, fetch.MaxBytes, fetch.IsolationLevel, fetch.SessionEpoch = 1, int32(bytes), 1, -1
	topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	topic.Topic, topic.TopicID = p.Topic, p.ID
	partition.Partition, partition.CurrentLeaderEpoch = p.Partition, epoch
	partition.FetchOffset, partition.PartitionMaxBytes = from, int32(bytes)
	topic.Partitions = append(topic.Partitions, partition)
	fetch.Topics = append(fetch.Topics, topic)
	if p.ID == [16]byte{} {
		return byName{fetch}
	}
	return fetch
}

// startBehind returns where a log starts whose records at from were deleted. It is called after a
// broker answered that from is out of range.
func (f *Fetcher) startBehind(ctx context.Context, p Partition, from int64) (int64, error) {
	// Of returns the error
	logs, _ := f.cluster.Bounds(ctx, map[string][]int32{p.Topic: {p.Partition}})
	start, end, err := logs.Of(p.Topic, p.Partition)
	switch {
	case err != nil:
		return 0, err
	case end < from:
		return 0, ErrOutOfLog
	case start <= from:
		return 0, kerr.OffsetOutOfRange
	}
	return start, nil
}

// perBroker bounds the requests in flight to each broker.
type perBroker struct {
	slots sync.Map // by broker's id: a channel with refetchesPerBroker places
}

// errCrowded reports that other requests had the broker's slots for so long that the leader may
// have changed.
var errCrowded = errors.New("the broker has too many requests in flight")

// acquire waits for a slot, at most refetchTimeout. release gives it back.
func (p *perBroker) acquire(ctx context.Context, broker int32) (release func(), err error) {
	found, _ := p.slots.LoadOrStore(broker, make(chan struct{}, refetchesPerBroker))
	slots := found.(chan struct{})
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-time.After(refetchTimeout):
		return nil, errCrowded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
