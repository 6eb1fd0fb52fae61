package dlq

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// idleLimit is how long nothing comes before the bounds are looked at again.
	idleLimit = time.Second
	// stallLimit is how long a partition may give nothing although its end is
	// not reached: longer than siding's transactions live and leaders take to
	// move.
	stallLimit = time.Minute
)

// Read yields the dead letters of a topic that the filter selects, from the
// cursor on, up to where the topic ends when the read begins, or where the
// cursor ends. Letters of a partition come in order, partitions interleave. What
// expired is not there, and no error.
//
// It reads what is committed: letters of an aborted transaction are not yielded,
// and one still open at the end is waited for. A record whose headers are broken
// or not siding's is yielded with [Letter.MetaErr] set.
//
// An error comes with a nil letter and ends the read, except when one partition
// gives nothing for a minute although it is not at its end (no leader, or a
// transaction that never ends): then the other partitions are still read. The
// letters before an error are good.
//
// The options say how to reach the cluster, and may tune fetching; what makes the
// read what it is overrides them. Each range over the result is a read of its own
// with a client of its own, which is closed when the loop ends, however it ends.
// To go on later, keep a cursor from [Freeze] and advance it letter by letter.
func Read(ctx context.Context, topic string, f Filter, from Cursor, opts ...kgo.Opt) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		scan(ctx, topic, from, opts, func(record *kgo.Record) bool {
			l := newLetter(record)
			return !f.Selects(l) || yield(l, nil)
		}, func(err error) bool {
			return yield(nil, fmt.Errorf("dlq: read %q: %w", topic, err))
		})
	}
}

// scan reads a topic's records, committed ones, from the cursor up to the end that it had, or that the cursor has. keep takes a record
// and problem an error; both report whether to go on.
func scan(ctx context.Context, topic string, from Cursor, opts []kgo.Opt, keep func(*kgo.Record) bool, problem func(error) bool) {
	left, err := freeze(ctx, topic, from, opts)
	if err != nil {
		problem(err)
		return
	}
	maps.DeleteFunc(left, func(_ int32, s span) bool { return s.at >= s.end })
	if len(left) == 0 {
		return
	}
	cl, err := kgo.NewClient(readOpts(topic, left, opts)...)
	if err != nil {
		problem(err)
		return
	}
	defer cl.Close()
	r := reader{cl: cl, topic: topic, left: left, progress: map[int32]time.Duration{}}
	r.run(ctx, keep, problem)
}

func readOpts(topic string, left map[int32]span, opts []kgo.Opt) []kgo.Opt {
	at := make(map[int32]kgo.Offset, len(left))
	for p, s := range left {
		at[p] = kgo.NewOffset().At(s.at)
	}
	return slices.Concat(
		// A fetch of a partition with nothing to give holds up those with it on
		// the same broker.
		[]kgo.Opt{kgo.FetchMaxWait(500 * time.Millisecond)},
		opts,
		[]kgo.Opt{
			kgo.ConsumeTopics(),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: at}),
			// The start of the log, where what we want next expired meanwhile.
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			// The last offsets may be markers of transactions: without seeing
			// them we would wait for ever for what comes behind.
			kgo.KeepControlRecords(),
		},
	)
}

// reader is one read under way.
type reader struct {
	cl    *kgo.Client
	topic string
	left  map[int32]span // partitions that are not at their end

	// Time is what was spent waiting for the cluster: how long the letters take
	// their receiver says nothing about a partition.
	waited   time.Duration
	progress map[int32]time.Duration // when a partition last gave something
	looked   time.Duration           // when look was last called
}

// run reads until every partition is at its end. keep takes a record and problem
// an error; both report whether to go on.
func (r *reader) run(ctx context.Context, keep func(*kgo.Record) bool, problem func(error) bool) {
	for len(r.left) > 0 {
		fetches := r.poll(ctx)
		if ctx.Err() != nil {
			problem(context.Cause(ctx))
			return
		}
		for _, e := range fetches.Errors() {
			switch {
			case errors.Is(e.Err, context.DeadlineExceeded):
				// Nothing came for a while.
			case isDataLoss(e.Err):
				// The broker lost what we had read or were about to; kgo goes on
				// at the start of the log, and take passes over what we had.
			default:
				problem(fmt.Errorf("partition %d: %w", e.Partition, e.Err))
				return
			}
		}
		for record := range fetches.RecordsAll() {
			if r.take(record) && !keep(record) {
				return
			}
		}
		if r.waited-r.looked >= idleLimit && !r.look(ctx, problem) {
			return
		}
	}
}

func (r *reader) poll(ctx context.Context) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, idleLimit)
	defer cancel()
	start := time.Now()
	defer func() { r.waited += time.Since(start) }()
	return r.cl.PollFetches(ctx)
}

// take moves on behind a record, and reports whether it is one of those to read.
func (r *reader) take(record *kgo.Record) bool {
	s, ok := r.left[record.Partition]
	if !ok || record.Offset < s.at {
		return false
	}
	wanted := record.Offset < s.end && !record.Attrs.IsControl()
	s.at = record.Offset + 1
	r.left[record.Partition] = s
	r.progress[record.Partition] = r.waited
	if s.at >= s.end {
		r.finish(record.Partition)
	}
	return wanted
}

func (r *reader) finish(partition int32) {
	delete(r.left, partition)
	r.cl.PauseFetchPartitions(map[string][]int32{r.topic: {partition}})
}

// look finishes partitions that will give nothing more: those whose letters
// expired up to the end, which no record will ever tell, and, with a problem,
// those that stall. It reports whether to go on.
func (r *reader) look(ctx context.Context, problem func(error) bool) bool {
	start := time.Now()
	defer func() {
		r.waited += time.Since(start)
		r.looked = r.waited
	}()
	var idle []int32
	for p := range r.left {
		if r.waited-r.progress[p] >= idleLimit {
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
	// Errors are not reported: the partition stalls then, and that is.
	starts, _ := adm.ListStartOffsets(ask, r.topic)
	for _, p := range idle {
		if o, ok := starts.Lookup(r.topic, p); ok && o.Err == nil && o.Offset >= r.left[p].end {
			r.finish(p)
			continue
		}
		if r.waited-r.progress[p] >= stallLimit {
			err := r.stalled(ask, adm, p)
			r.finish(p)
			if !problem(err) {
				return false
			}
		}
	}
	return true
}

// stalled says why a partition gives nothing, as far as can be told.
func (r *reader) stalled(ctx context.Context, adm *kadm.Client, p int32) error {
	s := r.left[p]
	why := "its leader may be gone"
	stable, err := adm.ListCommittedOffsets(ctx, r.topic)
	if o, ok := stable.Lookup(r.topic, p); err == nil && ok {
		switch {
		case o.Err != nil:
			why = o.Err.Error()
		case o.Offset < s.end:
			why = fmt.Sprintf("a transaction that is open since offset %d holds it back (kafka-transactions.sh find-hanging)", o.Offset)
		}
	}
	return fmt.Errorf("partition %d gives nothing between offset %d and its end at %d for %s: %s", p, s.at, s.end, stallLimit, why)
}

func isDataLoss(err error) bool {
	_, ok := errors.AsType[*kgo.ErrDataLoss](err)
	return ok
}
