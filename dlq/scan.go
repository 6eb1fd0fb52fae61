package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

const (
	// idleLimit is how long a read waits for records before it checks the bounds again.
	idleLimit = time.Second
	// fetchBytes bounds a broker's answer, compressed. The client holds one answer in memory. A
	// slow connection must carry it within the client's request timeout.
	fetchBytes = 2 << 20
	// stallLimit is how long a partition may deliver nothing before its end. It is longer than
	// siding's transactions live, and than leaders take to move.
	stallLimit = time.Minute
)

// scan is a read of a topic's committed records, up to the cursor's end, or the end that the topic
// has when the scan begins.
type scan struct {
	topic string
	opts  []kgo.Opt
	// cl is a client of newScanClient. Without one the scan has its own, by opts and soon.
	cl *kgo.Client
	// soon makes fetches small, so that the first record comes soon.
	soon bool
	// partly makes the scan read the other partitions where the bounds of some are not known.
	partly bool
	// narrow removes the offsets that need no reading. It may be nil.
	narrow func(map[int32]span)
	// keep takes a record and problem an error; both report whether to go on.
	keep    func(*kgo.Record) bool
	problem func(error) bool
	// progress is called with the number of offsets that were read, and their total, when the read
	// begins and from time to time. It may be nil.
	progress func(read, total int64)
	// ended has, after the scan, the partitions that were read to their ends.
	ended map[int32]bool
}

// A reader reads the records of scans by one client, up to the ends of their partitions. An error
// about one topic ends that topic's scan alone.
type reader struct {
	scans    map[string]*scan // by topic
	failed   map[string]bool  // the topics that were not read to their ends
	short    map[part]bool    // the partitions that were not
	progress func(read, total int64)

	cl    *kgo.Client
	left  map[part]span      // the partitions that are not at their end
	over  map[string][]int32 // the partitions that are, since the last poll
	total int64              // offsets to read, at the beginning

	// These count only the time spent waiting for the cluster. The time that the receiver takes for
	// the letters is not a partition's fault.
	waited    time.Duration
	delivered map[part]time.Duration // when a partition last delivered records
	polledAt  time.Duration          // at the last checkProgress
}

// part is a partition of a topic.
type part struct {
	topic     string
	partition int32
}

func newReader(progress func(read, total int64)) *reader {
	return &reader{
		scans: map[string]*scan{}, failed: map[string]bool{}, short: map[part]bool{}, progress: progress,
		left: map[part]span{}, over: map[string][]int32{}, delivered: map[part]time.Duration{},
	}
}

// add takes a scan, and the spans of its topic.
func (r *reader) add(s *scan, left map[int32]span) {
	if s.narrow != nil {
		s.narrow(left)
	}
	r.scans[s.topic] = s
	for p, span := range left {
		if span.at < span.end {
			r.left[part{s.topic, p}] = span
			r.total += span.end - span.at
		}
	}
}

// read reads by a client of [newScanClient] until every partition is at its end, or its topic
// failed.
func (r *reader) read(ctx context.Context, cl *kgo.Client) {
	r.report()
	if len(r.left) == 0 {
		return
	}
	r.cl = cl
	cl.AddConsumePartitions(r.places())
	for len(r.left) > 0 {
		fetches := r.poll(ctx)
		if ctx.Err() != nil {
			r.failAll(context.Cause(ctx))
			return
		}
		for _, e := range fetches.Errors() {
			r.fetchFailed(e)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { r.take(ctx, part{p.Topic, p.Partition}, p.Records) })
		r.report()
		if r.waited-r.polledAt >= idleLimit {
			r.checkProgress(ctx)
		}
		r.cl.PauseFetchPartitions(r.over)
		clear(r.over)
	}
	r.report()
}

// places returns where the partitions are read from.
func (r *reader) places() map[string]map[int32]kgo.Offset {
	at := map[string]map[int32]kgo.Offset{}
	for p, s := range r.left {
		if at[p.topic] == nil {
			at[p.topic] = map[int32]kgo.Offset{}
		}
		at[p.topic][p.partition] = kgo.NewOffset().At(s.at)
	}
	return at
}

// newScanClient creates the client of a read, which also asks for the bounds: over a slow link each
// client costs seconds until it knows the brokers. soon makes fetches small.
func newScanClient(opts []kgo.Opt, soon bool) (*kgo.Client, error) {
	tuned := []kgo.Opt{
		// Client metrics are two more requests of each read, and its end would await one of them.
		kgo.DisableClientMetrics(),
		// A fetch that waits for records of one partition holds up the other partitions of the same
		// broker.
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.FetchMaxBytes(fetchBytes),
		// Its end would await one more answer.
		kgo.DisableFetchSessions(),
	}
	if soon {
		tuned = append(tuned, kgo.FetchMaxBytes(1<<20), kgo.FetchMaxPartitionBytes(256<<10))
	}
	return client.New(slices.Concat(
		tuned,
		opts,
		[]kgo.Opt{
			kgo.ConsumeTopics(),
			kgo.ConsumePartitions(nil), // see read
			// If the next offset expired meanwhile, read on at the start of the log.
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			// The last offsets may be transaction markers. Without them the read would wait for
			// ever for a record at the end.
			kgo.KeepControlRecords(),
		},
	)...)
}

func (r *reader) fetchFailed(e kgo.FetchError) {
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded):
		// Nothing came for a while.
	case errors.As(e.Err, new(*kgo.ErrDataLoss)):
		// The broker lost records that were read or would be next. kgo continues at the start of
		// the log, and take skips the offsets that were read.
	case e.Topic != "" && r.scans[e.Topic] == nil:
		// The client read this topic before, in another reader.
	case e.Topic == "":
		r.failAll(e.Err)
	default:
		r.fail(e.Topic, fmt.Errorf("partition %d: %w", e.Partition, e.Err))
	}
}

// take passes on the fetched records of a partition, until ctx ends: what a filter does with each
// may take a while.
func (r *reader) take(ctx context.Context, p part, records []*kgo.Record) {
	s, ok := r.left[p]
	if !ok || len(records) == 0 {
		return
	}
	scan := r.scans[p.topic]
	for _, record := range records {
		if ctx.Err() != nil {
			return // it is still among those that are left, so read sees this
		}
		if s.take(record) && !scan.keep(record) {
			r.end(p.topic)
			return
		}
		if s.at >= s.end {
			r.finish(p)
			return
		}
	}
	r.left[p] = s
	r.delivered[p] = r.waited
}

// report calls progress.
func (r *reader) report() {
	if r.progress == nil {
		return
	}
	read := r.total
	for _, s := range r.left {
		read -= s.end - s.at
	}
	r.progress(read, r.total)
}

func (r *reader) poll(ctx context.Context) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, idleLimit)
	defer cancel()
	start := time.Now()
	defer func() { r.waited += time.Since(start) }()
	return r.cl.PollFetches(ctx)
}

func (r *reader) finish(p part) {
	delete(r.left, p)
	r.over[p.topic] = append(r.over[p.topic], p.partition)
}

// end ends a topic's scan before its partitions are at their ends.
func (r *reader) end(topic string) {
	r.failed[topic] = true
	for p := range r.left {
		if p.topic == topic {
			r.short[p] = true
			r.finish(p)
		}
	}
}

// fail ends a topic's scan with an error.
func (r *reader) fail(topic string, err error) {
	if !r.failed[topic] {
		r.end(topic)
		r.scans[topic].problem(err)
	}
}

// failAll ends the scans that are left.
func (r *reader) failAll(err error) {
	for p := range maps.Clone(r.left) {
		r.fail(p.topic, err)
	}
}

// checkProgress finishes partitions that will deliver nothing more. Some have no letters left
// before their end, because all expired. Others stall, which is a problem.
func (r *reader) checkProgress(ctx context.Context) {
	start := time.Now()
	defer func() {
		r.waited += time.Since(start)
		r.polledAt = r.waited
	}()
	var idle []part
	var topics []string
	for p := range r.left {
		if r.waited-r.delivered[p] >= idleLimit {
			idle, topics = append(idle, p), append(topics, p.topic)
		}
	}
	if len(idle) == 0 {
		return
	}
	slices.SortFunc(idle, part.compare)
	slices.Sort(topics)
	ask, cancel := context.WithTimeout(ctx, stallLimit/2)
	defer cancel()
	adm := kadm.NewClient(r.cl)
	// An error is ignored: the partition then stalls, and that is reported.
	starts, _ := adm.ListStartOffsets(ask, slices.Compact(topics)...)
	for _, p := range idle {
		s, ok := r.left[p]
		if !ok {
			continue // its topic's scan ended meanwhile
		}
		if o, ok := starts.Lookup(p.topic, p.partition); ok && o.Err == nil && o.Offset >= s.end {
			r.finish(p)
			continue
		}
		if r.waited-r.delivered[p] >= stallLimit {
			err := r.stalled(ask, adm, p)
			r.short[p] = true
			r.finish(p)
			if !r.scans[p.topic].problem(err) {
				r.end(p.topic)
			}
		}
	}
}

// stalled returns the error about a stalled partition, with the likely reason.
func (r *reader) stalled(ctx context.Context, adm *kadm.Client, p part) error {
	s := r.left[p]
	why := "its leader may be gone"
	stable, err := adm.ListCommittedOffsets(ctx, p.topic)
	if o, ok := stable.Lookup(p.topic, p.partition); err == nil && ok {
		switch {
		case o.Err != nil:
			why = o.Err.Error()
		case o.Offset < s.end:
			why = fmt.Sprintf("a transaction open since offset %d holds it back (kafka-transactions.sh find-hanging)", o.Offset)
		}
	}
	return fmt.Errorf("partition %d delivered nothing between offset %d and its end at %d for %s: %s", p.partition, s.at, s.end, stallLimit, why)
}

func (p part) compare(q part) int {
	return cmp.Or(cmp.Compare(p.topic, q.topic), cmp.Compare(p.partition, q.partition))
}
