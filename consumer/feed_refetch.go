package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
)

// Records that gave up their bytes are fetched again, block by block, by requests of siding's own: a consuming client reads
// ahead, and what it reads beyond would be thrown away again.

const (
	// maxRefetch bounds a request, in bytes. Less is asked for where less is wanted.
	maxRefetch = 1 << 20
	// refetchTimeout ends a request; the next one asks for the leader anew.
	refetchTimeout = 10 * time.Second
	// refetchesPerBroker bounds the answers that are in memory at a time beside the budget. A broker that does not answer holds up
	// its own partitions only.
	refetchesPerBroker = 2
)

// mayFetch reports whether given-up records could be fetched again now; the caller holds the lock.
func (f *feed) mayFetch() bool { return !f.refetching && (!f.starved || f.isNext(f.evicted.due())) }

// refetch has given-up records fetched again that are due soon; the caller holds the lock.
func (f *feed) refetch(now int64) {
	if !f.mayFetch() || f.evicted.due() > now+soon {
		return
	}
	if f.starved {
		f.starved = false
		f.lane.c.tierBudget.fed(f)
	}
	f.refetching = true
	f.lane.c.wg.Go(f.refetchLoop)
}

// retryRefetch is called for a hungry feed when there may be room.
func (f *feed) retryRefetch() {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	now := time.Now().UnixMilli()
	if !f.starved || f.lane.state >= laneDraining {
		return
	}
	if room := f.lane.c.tierBudget.room(f.inMemoryBytes); room.bytes < f.starvedOf || !room.suffices(f.evicted.each(), f.wantedBlock(now)) {
		return
	}
	f.starved = false
	f.lane.c.tierBudget.fed(f)
	f.refetch(now)
	f.arm()
}

// reopen reports whether the fetch of a feed that paused over an overdue backlog may go on.
func (f *feed) reopen(roomy bool) bool {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	if f.refetching || f.evicted.due() <= time.Now().UnixMilli() || !roomy && f.inMemory > 0 {
		return false
	}
	f.lane.c.tierBudget.reopened(f)
	f.full.Store(false)
	return true
}

// refetchLoop fetches given-up records until none is due soon, or there is no room for more.
func (f *feed) refetchLoop() {
	fits := true // what was fetched last
	for failures := 0; ; {
		block, due, want, ok := f.nextBlock(fits)
		if !ok {
			return
		}
		if failures > 2 { // let the others have their turn, should only this one be broken
			due = max(due, time.Now().Add(refetchTimeout).UnixMilli())
		}
		var err error
		if fits, err = f.refetchBlock(block, due, want); errors.Is(err, errCrowded) {
			fits = true
			continue
		}
		if err != nil {
			failures++
			fits = true // it is not for lack of room
			if !f.refetchFailed(err, failures) {
				return
			}
			continue
		}
		failures = 0
	}
}

// nextBlock chooses what to fetch, and about how many bytes of it. Without room, or where nothing of the last block fitted, the feed's
// own records that are due later make some; else it waits. It reports false where nothing is to be fetched now.
func (f *feed) nextBlock(fits bool) (block, due, want int64, ok bool) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	f.refetching = false
	now := time.Now().UnixMilli()
	if l.state >= laneDraining {
		return 0, 0, 0, false
	}
	if f.evicted.due() > now+soon {
		f.arm()
		if f.full.Load() {
			l.c.tierBudget.poke()
		}
		return 0, 0, 0, false
	}
	first := *f.evicted.first() // a copy: blocks move when more are given up
	want = f.wantedBlock(now)
	room := l.c.tierBudget.room(f.inMemoryBytes)
	if !fits || !room.suffices(f.evicted.each(), want) {
		freed := f.evict(now+2*soon, want+room.over)
		room = l.c.tierBudget.room(f.inMemoryBytes)
		fits = fits || freed > 0
	}
	if !f.isNext(first.due) && (!fits || !room.suffices(f.evicted.each(), want)) {
		f.starved = true
		l.c.tierBudget.waitForRoom(f, room.freed)
		return 0, 0, 0, false
	}
	f.refetching, f.starvedOf = true, 0
	block = first.base
	// A pass sees the whole block, however little room there is. Asked for in pieces, what came first would take the room of what is due
	// first, which would then be fetched by a pass of its own for each record.
	whole := min(int64(first.n)*f.evicted.each(), maxRefetch)
	return block, f.evicted.visit(block), max(min(want, room.bytes), whole, 1), true
}

// wantedBlock is about how many bytes to fetch from the block on that is due first; the caller holds the lock.
func (f *feed) wantedBlock(now int64) int64 {
	b := f.evicted.first()
	if b == nil {
		return 0
	}
	return max(min(f.evicted.run(b.base, now+2*soon), maxRefetch), 1)
}

// refetchFailed waits before the next try; false where the lane is given up meanwhile.
func (f *feed) refetchFailed(err error, failures int) bool {
	l := f.lane
	wait := backoff.Of(failures, 100*time.Millisecond, 5*time.Second)
	l.c.throttle.Once("refetch "+f.topic, time.Minute, func() {
		l.log.Warn("siding: parked records could not be fetched again, trying on", "retry_topic", f.topic, "wait", wait, "error", err)
	})
	l.c.retryCl.ForceMetadataRefresh() // most likely the leader moved
	if l.waitFor(wait) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f.refetching = false
	return false
}

// refetchBlock fetches a block, whose pass nextBlock began, and takes what else is wanted from the answers. due is when it was due. It reports
// whether anything was taken.
func (f *feed) refetchBlock(block, due, want int64) (any bool, err error) {
	l := f.lane
	left := int64(math.MaxInt64) // when the first is due of what stays away
	defer func() {
		if err != nil {
			left = due // not all of it was seen
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		f.evicted.leave(block, left)
	}()
	for at := block; ; {
		l.mu.Lock()
		from, ok := f.evicted.next(at)
		id := f.idToFetch()
		l.mu.Unlock()
		if !ok || from >= block+evictedBits {
			return any, nil
		}
		got, next, err := f.fetchAt(id, from, want)
		if err != nil {
			return any, fmt.Errorf("fetch of %s/%d at %d: %w", f.topic, l.partition, from, err)
		}
		l.mu.Lock()
		if l.state >= laneDraining {
			l.mu.Unlock()
			return any, nil
		}
		before := f.evicted.n
		due, lost := f.restore(got, from, next, block+evictedBits)
		left = min(left, due)
		any = any || f.evicted.n < before
		f.promote()
		l.mu.Unlock()
		if lost > 0 {
			l.c.expired(f.topic, l.partition, lost)
		}
		at = next
	}
}

// candidate is a record that was fetched again.
type candidate struct {
	rec       *kgo.Record
	due, size int64
}

// restore takes what was fetched again of the offsets from up to next: the soonest first, as long as there is room. It returns when
// the first is due of those below end that stay away, and how many the log has no more. The caller holds the lock.
func (f *feed) restore(got []*kgo.Record, from, next, end int64) (due, lost int64) {
	var found []candidate
	now := time.Now()
	for at, ok := f.evicted.next(from); ok && at < next; at, ok = f.evicted.next(at + 1) {
		for len(got) > 0 && got[0].Offset < at {
			got = got[1:]
		}
		if len(got) == 0 || got[0].Offset > at {
			f.evicted.remove(at, f.evicted.each())
			f.tracker.Finish(at)
			lost++
			continue
		}
		found = append(found, candidate{got[0], f.dueOf(got[0], f.readAt(at, now), now), packedSize(packedLen(got[0]))})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.rec.Offset, b.rec.Offset))
	})
	room := f.lane.c.tierBudget.room(f.inMemoryBytes)
	early := now.UnixMilli() + 2*soon
	room.bytes += f.evictFor(found, room.bytes, early)
	due = math.MaxInt64
	for _, r := range found {
		if r.size <= room.bytes && (r.due <= early || r.size <= room.early) || f.isNext(r.due) {
			room.bytes -= r.size
			room.early -= r.size
			f.evicted.remove(r.rec.Offset, r.size)
			f.keep(pack(r.rec, r.due))
			continue
		}
		if r.due <= early {
			room.early = 0 // what is left is for those that are due soon
			if f.starvedOf == 0 || r.size < f.starvedOf {
				f.starvedOf = r.size
			}
		}
		if r.rec.Offset < end {
			due = min(due, r.due)
		}
	}
	return due, lost
}

// evictFor has records of the feed give up their bytes for those found that are due earlier, soon, and have no room: so what it holds
// are the first ones of what it has seen. Else each of the others would be fetched for itself when it is the feed's next one, by a
// pass over its block. What was found comes in order. The caller holds the lock.
func (f *feed) evictFor(found []candidate, room, early int64) (freed int64) {
	sorted, n, want, cutoff := false, len(f.parked), int64(0), int64(0)
	var taken int64
	for _, r := range found {
		if taken += r.size; r.due > early {
			break
		}
		if taken <= room {
			continue
		}
		if !sorted {
			sorted = true
			f.sortParked()
		}
		i, gone := n, want
		for ; room+gone < taken && i > 0 && f.parked[i-1].due > r.due; i-- {
			gone += f.parked[i-1].size()
		}
		if room+gone < taken {
			break
		}
		n, want = i, gone
		if n < len(f.parked) {
			cutoff = f.parked[n].due
		}
	}
	if want == 0 {
		return 0
	}
	return f.evict(cutoff, want)
}

// idToFetch is the id of the tier's topic that a fetch asks for: that of what was read, else the one that its offsets are committed
// under. It is zero while every broker that was asked for it was too old to tell (before Kafka 2.8; in fetches, before 3.1). The
// caller holds the lock.
func (f *feed) idToFetch() [16]byte {
	if f.topicID == [16]byte{} {
		return f.id
	}
	return f.topicID
}

// byName is a fetch in the last version in which topics go by name: of a broker that was upgraded while the lane knew no id.
type byName struct{ *kmsg.FetchRequest }

func (byName) MaxVersion() int16 { return 12 }

// fetchAt fetches committed records from an offset on, about as many bytes as wanted, and tells which offset comes behind them.
func (f *feed) fetchAt(id [16]byte, from, want int64) (got []*kgo.Record, next int64, err error) {
	l, cl := f.lane, f.lane.c.retryCl
	leader, epoch, err := cl.PartitionLeader(f.topic, l.partition)
	if err != nil || leader < 0 {
		return nil, 0, errors.Join(errors.New("the leader is not known"), err)
	}
	release, err := l.c.refetches.acquire(l.abandon, leader)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(l.abandon, refetchTimeout)
	defer cancel()

	fetch := kmsg.NewPtrFetchRequest()
	fetch.MinBytes, fetch.MaxBytes, fetch.IsolationLevel, fetch.SessionEpoch = 1, int32(want), 1, -1
	topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	topic.Topic, topic.TopicID = f.topic, id
	partition.Partition, partition.CurrentLeaderEpoch, partition.FetchOffset, partition.PartitionMaxBytes = l.partition, epoch, from, int32(want)
	topic.Partitions = append(topic.Partitions, partition)
	fetch.Topics = append(fetch.Topics, topic)
	req := kmsg.Request(fetch)
	if id == [16]byte{} {
		req = byName{fetch}
	}
	// Not through the retry client, whose connections for fetches have its long polls on them.
	through, err := l.c.copyClients.Client()
	if err != nil {
		return nil, 0, err
	}
	answer, err := through.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, 0, errors.New("the broker answers about something else")
	}
	part := &resp.Topics[0].Partitions[0]
	if errors.Is(kerr.ErrorForCode(part.ErrorCode), kerr.OffsetOutOfRange) {
		return f.startBehind(ctx, from)
	}
	read, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: f.topic, Partition: l.partition,
		DisableCRCValidation: cl.OptValue(kgo.DisableFetchCRCValidation) == true,
	}, part, l.c.decompressor, nil)
	switch {
	case len(read.Records) > 0 || next > from:
	case read.Err != nil:
		return nil, 0, read.Err
	default:
		return nil, 0, errors.New("there is nothing")
	}
	var size int64
	for _, r := range read.Records {
		size += packedSize(packedLen(r))
	}
	l.c.tierBudget.refetchedBytes.Add(size)
	return read.Records, next, nil
}

// startBehind is what a fetch below the log's start finds: nothing, up to the start. Beyond the end the log is another one, and the lane
// starts anew.
func (f *feed) startBehind(ctx context.Context, from int64) ([]*kgo.Record, int64, error) {
	b, err := f.lane.c.cluster.Bounds(ctx, f.topic)
	if err != nil {
		return nil, 0, err
	}
	start, end, err := b.Of(f.topic, f.lane.partition)
	if err == nil && end < from {
		// The retry poll may be paused, and would not find out.
		p := f.lane.c.retryPoll
		p.betweenPolls(func() { p.c.moveTiers([]outOfRange{{at: topicPartition{f.topic, f.lane.partition}, tier: f}}) })
	}
	if err == nil && start <= from {
		err = kerr.OffsetOutOfRange
	}
	return nil, start, err
}
