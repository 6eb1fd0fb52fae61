package dlq

import (
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
	// soon makes fetches small, so that the first record comes soon.
	soon bool
	// narrow removes the offsets that need no reading. It may be nil.
	narrow func(map[int32]span)
	// keep takes a record and problem an error; both report whether to go on.
	keep    func(*kgo.Record) bool
	problem func(error) bool
	// progress is called with the number of offsets that were read, and their total, when the read
	// begins and from time to time. It may be nil.
	progress func(read, total int64)
}

// all passes each record to take. whole reports whether the read came to its end, perhaps without
// the rest of stalled partitions. err joins all errors.
func (s *scan) all(ctx context.Context, from Cursor, take func(*kgo.Record)) (whole bool, err error) {
	var errs []error
	s.keep = func(r *kgo.Record) bool {
		take(r)
		return true
	}
	s.problem = func(err error) bool {
		errs = append(errs, err)
		return true
	}
	whole = s.run(ctx, from)
	return whole, errors.Join(errs...)
}

// run reads, and reports whether the read came to its end, perhaps without the rest of stalled
// partitions.
func (s *scan) run(ctx context.Context, from Cursor) bool {
	left, err := freeze(ctx, s.topic, from, s.opts)
	if err != nil {
		return s.problem(err) && false
	}
	if s.narrow != nil {
		s.narrow(left)
	}
	maps.DeleteFunc(left, func(_ int32, p span) bool { return p.at >= p.end })
	r := reader{scan: s, left: left, delivered: map[int32]time.Duration{}}
	for _, p := range left {
		r.total += p.end - p.at
	}
	r.report()
	if len(left) == 0 {
		return true
	}
	r.cl, err = client.New(s.options(left)...)
	if err != nil {
		return s.problem(err) && false
	}
	defer r.cl.Close()
	return r.run(ctx)
}

func (s *scan) options(left map[int32]span) []kgo.Opt {
	at := make(map[int32]kgo.Offset, len(left))
	for p, s := range left {
		at[p] = kgo.NewOffset().At(s.at)
	}
	// A fetch that waits for records of one partition holds up the other partitions of the same
	// broker.
	tuned := []kgo.Opt{kgo.FetchMaxWait(500 * time.Millisecond), kgo.FetchMaxBytes(fetchBytes)}
	if s.soon {
		tuned = append(tuned, kgo.FetchMaxBytes(1<<20), kgo.FetchMaxPartitionBytes(256<<10))
	}
	return slices.Concat(
		tuned,
		s.opts,
		[]kgo.Opt{
			kgo.ConsumeTopics(),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: at}),
			// If the next offset expired meanwhile, read on at the start of the log.
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			// The last offsets may be transaction markers. Without them the read would wait for
			// ever for a record at the end.
			kgo.KeepControlRecords(),
		},
	)
}

// reader is a running scan.
type reader struct {
	*scan
	cl    *kgo.Client
	left  map[int32]span // the partitions that are not at their end
	total int64          // offsets to read, at the beginning

	// These count only the time spent waiting for the cluster. The time that the receiver takes for
	// the letters is not a partition's fault.
	waited    time.Duration
	delivered map[int32]time.Duration // when a partition last delivered records
	polledAt  time.Duration           // at the last checkProgress
}

// run reads until every partition is at its end. It returns false if the read ended before that.
func (r *reader) run(ctx context.Context) bool {
	for len(r.left) > 0 {
		fetches := r.poll(ctx)
		if ctx.Err() != nil {
			r.problem(context.Cause(ctx))
			return false
		}
		for _, e := range fetches.Errors() {
			switch {
			case errors.Is(e.Err, context.DeadlineExceeded):
				// Nothing came for a while.
			case errors.As(e.Err, new(*kgo.ErrDataLoss)):
				// The broker lost records that were read or would be next. kgo continues at the
				// start of the log, and take skips the offsets that were read.
			default:
				r.problem(fmt.Errorf("partition %d: %w", e.Partition, e.Err))
				return false
			}
		}
		stopped := false
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			stopped = stopped || !r.partition(p.Partition, p.Records)
		})
		if stopped {
			return false
		}
		r.report()
		if r.waited-r.polledAt >= idleLimit && !r.checkProgress(ctx) {
			return false
		}
	}
	r.report()
	return true
}

// partition passes on the fetched records of a partition, and reports whether to go on.
func (r *reader) partition(p int32, records []*kgo.Record) bool {
	s, ok := r.left[p]
	if !ok || len(records) == 0 {
		return true
	}
	for _, record := range records {
		if s.take(record) && !r.keep(record) {
			return false
		}
		if s.at >= s.end {
			r.finish(p)
			return true
		}
	}
	r.left[p] = s
	r.delivered[p] = r.waited
	return true
}

// report calls progress.
func (r *reader) report() {
	if r.progress == nil {
		return
	}
	read := r.total
	for _, p := range r.left {
		read -= p.end - p.at
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

func (r *reader) finish(partition int32) {
	delete(r.left, partition)
	r.cl.PauseFetchPartitions(map[string][]int32{r.topic: {partition}})
}

// checkProgress finishes partitions that will deliver nothing more. Some have no letters left
// before their end, because all expired. Others stall, which is a problem. It reports whether to go
// on.
func (r *reader) checkProgress(ctx context.Context) bool {
	start := time.Now()
	defer func() {
		r.waited += time.Since(start)
		r.polledAt = r.waited
	}()
	var idle []int32
	for p := range r.left {
		if r.waited-r.delivered[p] >= idleLimit {
			idle = append(idle, p)
		}
	}
	if len(idle) == 0 {
		return true
	}
	slices.Sort(idle)
	ask, cancel := context.WithTimeout(ctx, stallLimit/2)
	defer cancel()
	adm := kadm.NewClient(r.cl)
	// An error is ignored: the partition then stalls, and that is reported.
	starts, _ := adm.ListStartOffsets(ask, r.topic)
	for _, p := range idle {
		if o, ok := starts.Lookup(r.topic, p); ok && o.Err == nil && o.Offset >= r.left[p].end {
			r.finish(p)
			continue
		}
		if r.waited-r.delivered[p] >= stallLimit {
			err := r.stalled(ask, adm, p)
			r.finish(p)
			if !r.problem(err) {
				return false
			}
		}
	}
	return true
}

// stalled returns the error about a stalled partition, with the likely reason.
func (r *reader) stalled(ctx context.Context, adm *kadm.Client, p int32) error {
	s := r.left[p]
	why := "its leader may be gone"
	stable, err := adm.ListCommittedOffsets(ctx, r.topic)
	if o, ok := stable.Lookup(r.topic, p); err == nil && ok {
		switch {
		case o.Err != nil:
			why = o.Err.Error()
		case o.Offset < s.end:
			why = fmt.Sprintf("a transaction open since offset %d holds it back (kafka-transactions.sh find-hanging)", o.Offset)
		}
	}
	return fmt.Errorf("partition %d delivered nothing between offset %d and its end at %d for %s: %s", p, s.at, s.end, stallLimit, why)
}
