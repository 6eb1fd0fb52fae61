package letterindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
)

// Index has a row for each letter of a dead-letter topic, resolved ones included. Its methods are
// safe for concurrent use.
type Index struct {
	topic, ledgerTopic string
	opts               []kgo.Opt

	records atomic.Uint64 // see Records

	turn   chan struct{} // has an element during a refresh, which owns ledger
	ledger *dlq.Ledger
	// ledgerID is that of the ledger's topic, lastID that of the last one that existed, and
	// failures counts the refreshes in a row that could not read it. The goroutine that has the
	// turn owns them.
	ledgerID, lastID [16]byte
	failures         int
	ledgerEnds       ends // of what was read
	runsChanged      bool // in the ledger, since runs were taken from it

	mu         sync.RWMutex
	partitions map[int32]*partition
	kinds      kinds
	notes      map[string][]byte // of the servers, by name
	acts       acts
	prunes     ledgerrecord.Prunes
	runs       []redrive.Outcome
	broken     error     // runs that cannot be read
	began      bool      // a refresh has begun
	complete   time.Time // when the last refresh that missed nothing began
	read       time.Time // when the last one began that read letters, of some partitions at least
	unread     int64     // offsets that the refresh under way has still to read
	problem    error     // why the last refresh missed something
	topicID    [16]byte
	hadLetters bool      // of this topic, before the last refresh
	forgotten  time.Time // when their ledger was found to be another one, and
	lost       time.Time // when it was found to have lost its end
	changes    uint64    // grows with each change of a row
	became     [11]int64 // outcomes since the index was complete (see Flow), by index of states
	summary    *Summary  // of that number of changes
	summarized uint64
}

// partition has the rows of one partition, in the order of their offsets.
type partition struct {
	rows
	start int64 // the topic's
	next  int64 // the offset from which nothing was read
	known bool  // it was read to its end once
}

// states are the states of letters. A row has the index.
var states = []dlq.State{
	"", dlq.Redriven, dlq.Succeeded, dlq.Failed, dlq.Discarded, dlq.Expired, dlq.Duplicate, dlq.Unknown, dlq.Unfollowed, dlq.Compensated, dlq.Reopened,
}

func stateNumber(s dlq.State) uint8 { return uint8(max(slices.Index(states, s), 0)) }

// New returns the index of a dead-letter topic, without reading it. ledger is the name of the
// ledger's topic. opts connect to the cluster.
func New(topic, ledger string, opts ...kgo.Opt) *Index {
	return &Index{topic: topic, ledgerTopic: ledger, opts: opts, turn: make(chan struct{}, 1), partitions: map[int32]*partition{}, notes: map[string][]byte{}, prunes: ledgerrecord.Prunes{}, ledgerEnds: ends{}}
}

// Partitions returns how many partitions the topic had at the last refresh.
func (b *Index) Partitions() (n int32) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for id := range b.partitions {
		n = max(n, id+1)
	}
	return n
}

// Changes returns a number that grows with each change of what the index says.
func (b *Index) Changes() uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.changes
}

// Records returns how many records of the topic and its ledger were read so far. It grows during a
// refresh, unless the brokers are silent.
func (b *Index) Records() uint64 { return b.records.Load() }

// Refresh reads what came since the last refresh: letters, entries of the ledger, and what
// retention deleted. The first one reads all. Only one runs at a time; another call waits for it.
// tuned are options of this refresh, beside those of the index.
//
// After an error the index has what could be read, and the next call goes on. Letters are read
// whose partition and whose ledger's partition can be; the others stay as they were. An error that
// wraps [dlq.ErrNewerVersion] means that all was read, but that a newer siding wrote entries of
// letters. A topic that was recreated empties the index, and the next call begins anew.
func (b *Index) Refresh(ctx context.Context, tuned ...kgo.Opt) error {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.turn }()
	began := time.Now()
	some, err := b.refresh(ctx, slices.Concat(b.opts, tuned))
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || b.problem != nil || b.complete.IsZero() {
		b.changes++ // of what Progress says
	}
	if b.began, b.unread = true, 0; ctx.Err() == nil { // a caller who left is no problem
		b.problem = err
	}
	if err == nil || errors.Is(err, dlq.ErrNewerVersion) {
		b.complete = began
	}
	if some {
		b.read = began
	}
	if b.ledger == nil {
		return err
	}
	if b.topicID = b.ledger.TopicID(); b.runsChanged {
		b.runs, b.broken = redrive.RunsIn(b.ledger)
		b.runsChanged = false
	}
	return err
}

// Runs returns the runs of the ledger, the oldest first. The error is about those that cannot be
// read.
func (b *Index) Runs() ([]redrive.Outcome, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.runs, b.broken
}

// refresh reports whether it read letters, of some partitions at least.
func (b *Index) refresh(ctx context.Context, opts []kgo.Opt) (some bool, err error) {
	b.ledger = tuned(b.ledger, b.topic, b.ledgerTopic, opts)
	frozen := freeze(ctx, b.topic, opts)
	defer func() { _, _ = frozen() }() // it uses ctx
	var touched []place
	missed := b.ledger.Read(ctx, nil, func(n *dlq.LedgerRecord) {
		b.records.Add(1)
		b.ledgerEnds.add(n.Record)
		touched = b.touch(touched, n)
	})
	b.judge(touched) // the next read does not have them again
	var newer error
	if errors.Is(missed, dlq.ErrNewerVersion) {
		newer, missed = missed, nil // all was read
	}
	b.compareLedgers()
	if id := b.ledger.LedgerID(); b.ledgerID != id {
		if b.ledgerID != ([16]byte{}) {
			b.reset()
			return false, fmt.Errorf("letterindex: the ledger %s was deleted or recreated: %s is read anew", b.ledgerTopic, b.topic)
		}
		b.ledgerID = id
	}
	cursor, err := frozen()
	maps.DeleteFunc(cursor.End, func(p int32, _ int64) bool { return !b.ledger.Known(p) })
	if some = len(cursor.End) > 0; some { // else it would be a cursor of all
		b.begin(&cursor)
		err = cmp.Or(err, b.readLetters(ctx, cursor))
	}
	if missed == nil {
		b.failures = 0
	} else if b.failures++; ctx.Err() == nil {
		b.resetIfAnother(ctx, some)
	}
	return some && ctx.Err() == nil, cmp.Or(missed, err, newer)
}

// tries is how often in a row the ledger must not have been read until it is read anew.
const tries = 3

// resetIfAnother resets the index if the topic is not the one any more that the ledger was read of,
// or the ledger has lost its end. A new ledger answers. some reports whether a part of the old one
// was read.
func (b *Index) resetIfAnother(ctx context.Context, some bool) {
	if some && b.failures < tries {
		return // it is the same topic
	}
	frozen, err := dlq.Freeze(ctx, b.ledgerTopic, b.opts...)
	if some && err != nil {
		return // a partition is silent, and a new ledger would be read in vain
	}
	lost := b.ledgerEnds.beyond(frozen.End)
	now := dlq.NewLedger(b.topic, b.ledgerTopic, b.opts...)
	if now.Read(ctx, nil, func(*dlq.LedgerRecord) { b.records.Add(1) }) != nil {
		return
	}
	another := now.TopicID() != b.ledger.TopicID()
	if !another && b.failures < tries {
		return
	}
	b.reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case another: // the letters are gone, too
		b.hadLetters, b.forgotten, b.lost = false, time.Time{}, time.Time{}
	case lost && b.hadLetters:
		b.lost = time.Now()
		b.forgotten = b.lost
	}
}

// compareLedgers notices that the letters of an earlier refresh had another ledger than now, or
// none. A ledger that is gone may come back; nothing can be done without it anyway.
func (b *Index) compareLedgers() {
	id := b.ledger.LedgerID()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.partitions {
		b.hadLetters = b.hadLetters || p.n > 0
	}
	if id == ([16]byte{}) || id == b.lastID {
		return
	}
	if b.lastID = id; b.hadLetters {
		b.forgotten = time.Now()
	}
}

// Forgotten returns when the index noticed that the ledger was created after letters of the topic,
// or has lost its end, as after an unclean election. So it is unknown which of them came home. It
// is zero otherwise. An index does not notice what happened before its first refresh.
func (b *Index) Forgotten() time.Time {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.forgotten
}

// Lost returns when the ledger was found to have lost its end, and zero if it was not.
func (b *Index) Lost() time.Time {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.lost
}

func (b *Index) reset() {
	b.ledger, b.ledgerID, b.failures, b.runsChanged = nil, [16]byte{}, 0, true
	clear(b.ledgerEnds)
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.partitions)
	clear(b.notes)
	clear(b.prunes)
	b.kinds, b.acts, b.complete, b.read, b.became = kinds{}, acts{}, time.Time{}, time.Time{}, [11]int64{}
	b.runs, b.broken = nil, nil
	b.changes++
}

// begin drops what retention deleted and what the brokers lost, and moves a cursor to what was not
// read.
func (b *Index) begin(c *dlq.Cursor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	dropped := 0
	for id, end := range c.End {
		p := b.partitions[id]
		if p == nil {
			p = &partition{}
			b.partitions[id] = p
		}
		p.start = c.At[id]
		if n := p.drop(p.start); n > 0 {
			dropped += n
			b.changes++
		}
		if lost := min(end, b.ledger.TakeCut(id)); lost < p.next { // it is written anew from there
			p.cut(lost)
			p.next = lost
			b.changes++
		}
		p.next = max(p.next, p.start)
		c.At[id] = p.next
		b.unread += max(end-p.next, 0)
	}
	if dropped > 0 {
		b.forgetKinds()
	}
}

// readLetters adds rows for the letters from a cursor on.
func (b *Index) readLetters(ctx context.Context, c dlq.Cursor) error {
	const batch, batchBytes = 1000, 1 << 20
	pending, size := make([]*dlq.Letter, 0, batch), 0
	var problem error
	for l, err := range b.ledger.Letters(ctx, dlq.Filter{}, c, dlq.WithResolved) {
		if err != nil {
			problem = errors.Join(problem, err)
			continue
		}
		b.records.Add(1)
		size += len(l.Record.Value)
		if pending = append(pending, l); len(pending) == batch || size > batchBytes {
			b.add(pending)
			clear(pending)
			pending, size = pending[:0], 0
		}
	}
	b.add(pending)
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, end := range c.End {
		p := b.partitions[id]
		if problem == nil {
			p.next = max(p.next, end)
		}
		p.known = p.known || p.next >= end
	}
	return problem
}

func (b *Index) add(letters []*dlq.Letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range letters {
		r := l.Record
		p := b.partitions[r.Partition]
		b.unread -= r.Offset + 1 - p.next
		p.next = r.Offset + 1
		is := row{
			offset: r.Offset, failed: l.FailedAt().UnixMilli(), entered: r.Timestamp.UnixMilli(),
			kind: b.kinds.number(l), state: stateNumber(l.State),
			copied: l.State == dlq.Duplicate && b.ledger.State(r.Partition, r.Offset) == "",
		}
		p.add(&is)
		if p.known || !b.complete.IsZero() {
			b.came(&is)
		}
	}
	b.changes += uint64(len(letters))
}

// judge takes over the states of letters whose entries changed.
func (b *Index) judge(touched []place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := map[*rowChunk]bool{}
	for _, at := range touched {
		p := b.partitions[at.partition] // touch found it
		chunk, i, ok := p.find(at.offset)
		if !ok {
			continue
		}
		c := p.chunks[chunk]
		was, state := c.row(i), b.ledger.State(at.partition, at.offset)
		if state == "" && was.copied {
			state = dlq.Duplicate
		}
		if p.known || !b.complete.IsZero() {
			b.turned(was.state, stateNumber(state))
		}
		c.setState(i, stateNumber(state))
		changed[c] = true
		b.changes++
	}
	for c := range changed {
		c.recount()
	}
}
