package tail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

const (
	// tailWait is how long a broker waits for records before it answers.
	tailWait = 200 * time.Millisecond
	// tailPause is the interval between requests while a broker has only records of the run.
	tailPause = 50 * time.Millisecond
	// describeEvery is the interval at which missing leaders and deleted topics are looked up.
	describeEvery = time.Second
	// resetTimeout bounds the lookup of a partition's start, because nothing else is read
	// meanwhile.
	resetTimeout = 2 * time.Second
	// Bytes to fetch from a partition: few for the heads of batches, many while others write to it,
	// and more up to maxBytes for a larger batch.
	headBytes = 16 << 10
	fillBytes = 1 << 20
	maxBytes  = 128 << 20
	// answerBytes bounds the bytes of one answer. A slow connection must carry it within the
	// client's request timeout.
	answerBytes = 2 << 20
)

// Tail reads partitions uncommitted from given positions, and shows the records that the run did
// not write.
type Tail struct {
	cl *kgo.Client
	// gets others' records; called from one goroutine, in the order of each partition
	onBatch func(*kgo.Record)
	problem func(error)
	stop    context.CancelFunc
	stopped chan struct{}

	producers map[int64]int16 // producer ids of the run, with the first epoch that is its own

	// The loop's fields.
	cluster   map[string]tailed // last known leaders by topic
	described time.Time         // last lookup of cluster
	stale     bool              // a broker answered with an error since the lookup

	mu      sync.Mutex
	at      map[string]map[int32]*cursor
	moved   chan struct{}  // closed when a position moves
	lossy   map[int32]bool // partitions with possibly missed records
	missing error          // a missing permission that stops the reading
}

// tailed is a topic as the cluster describes it.
type tailed struct {
	id      [16]byte
	leaders map[int32]int32 // by partition, if it has a leader
}

// New returns a tail that has no partitions yet. It calls show from one goroutine, in the order of
// each partition. It calls problem with errors that it retries. Close closes the client.
func New(cl *kgo.Client, show func(*kgo.Record), problem func(error)) *Tail {
	return &Tail{
		cl: cl, onBatch: show, problem: problem, producers: map[int64]int16{}, cluster: map[string]tailed{}, stopped: make(chan struct{}),
		at: map[string]map[int32]*cursor{}, moved: make(chan struct{}), lossy: map[int32]bool{},
	}
}

// SkipProducers sets the producer ids whose batches are skipped, each with the first epoch of the
// run. It must be called before Start.
func (t *Tail) SkipProducers(producers map[int64]int16) { t.producers = producers }

// MarkMissed records that records of a partition may have been missed.
func (t *Tail) MarkMissed(partition int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lossy[partition] = true
}

// MarkTopicMissed calls MarkMissed for all partitions of a topic.
func (t *Tail) MarkTopicMissed(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.at[topic] {
		t.lossy[p] = true
	}
}

// Start starts the reading.
func (t *Tail) Start(ctx context.Context) {
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	go t.loop(ctx)
}

// Close stops the reading, and closes the client.
func (t *Tail) Close() {
	t.stop()
	<-t.stopped
	t.cl.Close()
}

// Add adds partitions with their first positions. It ignores partitions that the tail has.
func (t *Tail) Add(from bounds.Positions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for topic, partitions := range from {
		if t.at[topic] == nil {
			t.at[topic] = map[int32]*cursor{}
		}
		for p, at := range partitions {
			if t.at[topic][p] == nil {
				t.at[topic][p] = &cursor{at: at, limit: headBytes, stuck: -1}
			}
		}
	}
}

// SkipRecords names records of the run by their acknowledged offsets. The tail skips them.
func (t *Tail) SkipRecords(records []*kgo.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var (
		topic     string
		partition int32
		p         *cursor
	)
	for _, r := range records {
		if p == nil || partition != r.Partition || topic != r.Topic {
			topic, partition, p = r.Topic, r.Partition, t.at[r.Topic][r.Partition]
			if p == nil { // it is not watched
				continue
			}
		}
		if n := len(p.own); n > 0 && p.own[n-1].until == r.Offset {
			p.own[n-1].until++
		} else {
			p.own = append(p.own, extent{r.Offset, r.Offset + 1})
		}
	}
}

// loop asks each broker again as soon as it has answered. So a broker that hangs does not delay
// records from the others. It handles one answer at a time.
func (t *Tail) loop(ctx context.Context) {
	defer close(t.stopped)
	var (
		answers = make(chan func())     // each handles an answer
		asked   = map[int32]bool{}      // leaders with an open request
		next    = map[int32]time.Time{} // earliest next request of the others
		asking  bool                    // a lookup of leaders is open
		timer   = time.NewTimer(0)
	)
	defer timer.Stop()
	answer := func(handle func()) {
		select {
		case answers <- handle:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		now := time.Now()
		if topics := t.undescribed(now); len(topics) > 0 && !asking {
			asking, t.described = true, now
			go func() {
				resp, err := describe(ctx, t.cl, topics)
				answer(func() {
					asking = false
					if err == nil {
						err = t.learn(resp)
					}
					t.heed(err)
				})
			}()
		}
		wake := tailPause
		for leader, req := range t.requests(func(leader int32) bool {
			if wait := next[leader].Sub(now); wait > 0 && !asked[leader] {
				wake = min(wake, wait)
				return false
			}
			return !asked[leader]
		}) {
			asked[leader] = true
			go func() {
				resp, err := req.RequestWith(ctx, t.cl.Broker(int(leader)))
				answer(func() {
					asked[leader] = false
					others := false
					if err == nil {
						others, err = t.take(ctx, resp)
					}
					switch {
					case ctx.Err() != nil:
					case err != nil:
						t.heed(err)
						next[leader] = now.Add(tailWait)
					case !others:
						next[leader] = now.Add(tailPause)
					}
				})
			}()
		}
		timer.Reset(wake)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case handle := <-answers:
			handle()
		}
	}
}

// heed reports an error of a broker, if any, and requests a lookup of the leaders.
func (t *Tail) heed(err error) {
	if err == nil {
		return
	}
	t.stale = true
	if _, denied := errors.AsType[*permission.DeniedError](err); denied {
		t.wake(err)
	} else if !kerr.IsRetriable(err) {
		t.problem(fmt.Errorf("watch: %w", err))
	}
}

// wake wakes the callers of WaitUntil. A missing permission ends them.
func (t *Tail) wake(missing error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missing = cmp.Or(t.missing, missing)
	close(t.moved)
	t.moved = make(chan struct{})
}

// joined returns the first error that is not retriable, or else the first error.
func joined(errs []error) (err error) {
	for _, e := range errs {
		if e != nil && (err == nil || kerr.IsRetriable(err)) {
			err = e
		}
	}
	return err
}

// undescribed returns the topics whose leaders have to be looked up now.
func (t *Tail) undescribed(now time.Time) (topics []string) {
	since := now.Sub(t.described)
	if !t.described.IsZero() && (since < tailWait || since < describeEvery && !t.stale) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for topic, partitions := range t.at {
		lacks := t.stale
		for p := range partitions {
			_, led := t.cluster[topic].leaders[p]
			lacks = lacks || !led
		}
		if lacks {
			topics = append(topics, topic)
		}
	}
	return topics
}

func describe(ctx context.Context, cl *kgo.Client, topics []string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		r := kmsg.NewMetadataRequestTopic()
		r.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, r)
	}
	return req.RequestWith(ctx, cl)
}

// learn handles the cluster's answer about topics.
func (t *Tail) learn(resp *kmsg.MetadataResponse) error {
	t.stale = false
	var errs []error
	for _, found := range resp.Topics {
		if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
			delete(t.cluster, *found.Topic)
			if !errors.Is(err, kerr.UnknownTopicOrPartition) { // a deleted topic is no error
				errs = append(errs, fmt.Errorf("describe topic %q: %w", *found.Topic, permission.Denied("DESCRIBE", "topic", *found.Topic, err)))
			}
			continue
		}
		known := tailed{found.TopicID, map[int32]int32{}}
		for _, p := range found.Partitions {
			if p.Leader >= 0 {
				known.leaders[p.Partition] = p.Leader
			}
		}
		t.cluster[*found.Topic] = known
	}
	return joined(errs)
}

// requests returns a fetch request for each leader that may be asked, from the present positions.
func (t *Tail) requests(may func(leader int32) bool) map[int32]*kmsg.FetchRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	requests := map[int32]*kmsg.FetchRequest{}
	for topic, partitions := range t.at {
		known := t.cluster[topic]
		for p, state := range partitions {
			leader, led := known.leaders[p]
			if !led {
				continue
			}
			req, ready := requests[leader]
			if !ready && may(leader) {
				req = kmsg.NewPtrFetchRequest()
				req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = int32(tailWait/time.Millisecond), 1, answerBytes, -1
				requests[leader] = req
			}
			if req == nil {
				continue
			}
			state.pass()
			if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != topic {
				ask := kmsg.NewFetchRequestTopic()
				ask.Topic, ask.TopicID = topic, known.id
				req.Topics = append(req.Topics, ask)
			}
			ask := kmsg.NewFetchRequestTopicPartition()
			ask.Partition, ask.FetchOffset, ask.PartitionMaxBytes = p, state.at, state.limit
			of := &req.Topics[len(req.Topics)-1]
			of.Partitions = append(of.Partitions, ask)
		}
	}
	return requests
}

// take handles the fetch answer of a broker. It reports whether it has records of other writers.
func (t *Tail) take(ctx context.Context, resp *kmsg.FetchResponse) (others bool, err error) {
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return false, err
	}
	defer t.wake(nil)
	names := map[[16]byte]string{}
	if resp.Version >= 13 { // KIP-516
		for name, d := range t.cluster {
			names[d.id] = name
		}
	}
	var errs []error
	for i := range resp.Topics {
		found := &resp.Topics[i]
		topic := found.Topic
		if resp.Version >= 13 {
			topic = names[found.TopicID]
		}
		for j := range found.Partitions {
			more, err := t.takePartition(topic, &found.Partitions[j])
			if errors.Is(err, kerr.OffsetOutOfRange) {
				err = t.reset(ctx, topic, found.Partitions[j].Partition)
			}
			if err != nil && !kerr.IsRetriable(err) {
				err = fmt.Errorf("%s/%d: %w", topic, found.Partitions[j].Partition, permission.Denied("READ", "topic", topic, err))
			}
			others = others || more
			errs = append(errs, err)
		}
	}
	return others, joined(errs)
}

// takePartition shows other writers' records of a partition.
func (t *Tail) takePartition(topic string, found *kmsg.FetchResponseTopicPartition) (others bool, err error) {
	t.mu.Lock()
	state := t.at[topic][found.Partition]
	var at int64
	if state != nil {
		at = state.at
	}
	t.mu.Unlock()
	if err := kerr.ErrorForCode(found.ErrorCode); state == nil || err != nil {
		return false, err
	}
	left := found.RecordBatches
	for len(left) > 0 && err == nil {
		head, known, whole := parseBatch(left)
		switch {
		case !known:
			at, err = t.read(topic, found, left, at)
			others, left = true, nil
			continue
		case !whole:
			left = nil
			continue
		}
		if head.last >= at {
			if first, own := t.producers[head.producer]; !head.control && !(own && head.epoch >= first) {
				others = true
				if _, err = t.read(topic, found, left[:head.size], at); err != nil {
					break
				}
			}
			at = head.last + 1
		}
		left = left[head.size:]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	state.ask(at, others, found.HighWatermark)
	return others, err
}

// reset continues at the start of a partition, after retention or a broker's loss removed records.
func (t *Tail) reset(ctx context.Context, topic string, partition int32) error {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	starts, err := kadm.NewClient(t.cl).ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	start, ok := starts.Lookup(topic, partition)
	if !ok || start.Err != nil {
		return start.Err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lossy[partition] = true
	p := t.at[topic][partition]
	p.at, p.own = start.Offset, nil
	return nil
}

// read shows the records of batches from an offset on, and returns the next offset.
func (t *Tail) read(topic string, found *kmsg.FetchResponseTopicPartition, batches []byte, from int64) (at int64, err error) {
	part, o := *found, kgo.ProcessFetchPartitionOpts{Offset: from, Topic: topic, Partition: found.Partition}
	part.RecordBatches = batches
	decompressor, _ := t.cl.OptValue(kgo.WithDecompressor).(kgo.Decompressor) // never nil
	fetched, at := kgo.ProcessFetchPartition(o, &part, decompressor, nil)
	for _, r := range fetched.Records {
		t.onBatch(r)
	}
	return at, fetched.Err
}

// WaitUntil waits until everything below the positions was read. It returns an error if a
// permission is missing or ctx ends.
func (t *Tail) WaitUntil(ctx context.Context, to bounds.Positions) error {
	for {
		t.mu.Lock()
		topic, partition, short := t.short(to)
		moved, lacks := t.moved, t.missing
		t.mu.Unlock()
		switch {
		case lacks != nil:
			return fmt.Errorf("watch %w", lacks)
		case !short:
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("watch %s/%d up to %d: %w", topic, partition, to[topic][partition], context.Cause(ctx))
		}
	}
}

// short returns a partition that was not read up to its position.
func (t *Tail) short(to bounds.Positions) (topic string, partition int32, short bool) {
	for topic, partitions := range to {
		for p, end := range partitions {
			at := int64(0)
			if state := t.at[topic][p]; state != nil {
				state.pass()
				at = state.at
			}
			if at < end {
				return topic, p, true
			}
		}
	}
	return "", 0, false
}

// Missed reports whether records of a partition number may have been missed, on any topic.
func (t *Tail) Missed(partition int32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lossy[partition]
}
