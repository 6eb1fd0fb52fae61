package book

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// Book has a row for each letter of a dead-letter topic, resolved ones included. Its methods are
// safe for concurrent use.
type Book struct {
	topic, ledgerTopic string
	opts               []kgo.Opt

	turn   chan struct{} // has an element during a refresh, which owns ledger
	ledger *dlq.Ledger
	// ledgerID is that of the ledger's topic, and failures counts the refreshes in a row that could
	// not read it. Both are of whoever has the turn.
	ledgerID [16]byte
	failures int

	mu         sync.RWMutex
	partitions map[int32]*partition
	kinds      kinds
	notes      map[string][]byte // of the servers, by name
	acts       acts
	prunes     prunes
	began      bool      // a refresh has begun
	complete   time.Time // when the last refresh that missed nothing began
	unread     int64     // offsets that the refresh under way has still to read
	problem    error     // why the last refresh missed something
	topicID    [16]byte
	changes    uint64    // grows with each change of a row
	became     [11]int64 // outcomes since the book was first complete, by index of states
	summary    *Summary  // of that number of changes
	summarized uint64
}

// partition has the rows of one partition, in the order of their offsets.
type partition struct {
	rows
	start int64 // the topic's
	next  int64 // the offset from which nothing was read
}

// states are the states of letters. A row has the index.
var states = []dlq.State{
	"", dlq.Redriven, dlq.Succeeded, dlq.Failed, dlq.Discarded, dlq.Expired, dlq.Duplicate, dlq.Unknown, dlq.Unfollowed, dlq.Compensated, dlq.Reopened,
}

func stateNumber(s dlq.State) uint8 { return uint8(max(slices.Index(states, s), 0)) }

// New returns the book of a dead-letter topic, without reading it. ledger is the name of the
// ledger's topic. opts connect to the cluster.
func New(topic, ledger string, opts ...kgo.Opt) *Book {
	return &Book{topic: topic, ledgerTopic: ledger, opts: opts, turn: make(chan struct{}, 1), partitions: map[int32]*partition{}, notes: map[string][]byte{}, prunes: prunes{}}
}

// Topic returns the name of the dead-letter topic.
func (b *Book) Topic() string { return b.topic }

// Partitions returns how many partitions the topic had at the last refresh.
func (b *Book) Partitions() (n int32) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for id := range b.partitions {
		n = max(n, id+1)
	}
	return n
}

// Changes returns a number that grows with each change of what the book says.
func (b *Book) Changes() uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.changes
}

// Refresh reads what came since the last refresh: letters, entries of the ledger, and what
// retention deleted. The first one reads all. Only one runs at a time; another call waits for it.
//
// After an error the book has what could be read, and the next call goes on. An error that wraps
// [dlq.ErrNewerVersion] means that all was read, but that a newer siding wrote entries of letters.
// A topic that was recreated empties the book, and the next call begins anew.
func (b *Book) Refresh(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.turn }()
	began := time.Now()
	err := b.refresh(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || b.problem != nil || b.complete.IsZero() {
		b.changes++ // of what Progress says
	}
	b.began, b.problem, b.unread = true, err, 0
	if b.ledger != nil {
		b.topicID = b.ledger.TopicID()
	}
	if err == nil || errors.Is(err, dlq.ErrNewerVersion) {
		b.complete = began
	}
	return err
}

func (b *Book) refresh(ctx context.Context) error {
	if b.ledger == nil {
		b.ledger = dlq.NewLedger(b.topic, b.ledgerTopic, b.opts...)
	}
	var touched []place
	var newer error
	switch err := b.ledger.Read(ctx, nil, func(n *dlq.LedgerRecord) { touched = b.touch(touched, n) }); {
	case err == nil:
	case errors.Is(err, dlq.ErrNewerVersion):
		newer = err // all was read
	default:
		if b.failures++; ctx.Err() == nil && b.isAnother(ctx) {
			b.reset()
		}
		return err
	}
	b.failures = 0
	if id := b.ledger.LedgerID(); b.ledgerID != id {
		if b.ledgerID != ([16]byte{}) {
			b.reset()
			return fmt.Errorf("book: the ledger %s was recreated: %s is read anew", b.ledgerTopic, b.topic)
		}
		b.ledgerID = id
	}
	cursor, err := dlq.Freeze(ctx, b.topic, b.opts...)
	if err != nil {
		return fmt.Errorf("book: %w", err)
	}
	b.begin(&cursor)
	err = b.readLetters(ctx, cursor)
	b.judge(touched)
	return cmp.Or(err, newer)
}

// tries is how often in a row the ledger must not have been read until it is read anew.
const tries = 3

// isAnother reports whether the topic is not the one any more that the ledger was read of, or the
// ledger has lost its end. A new ledger answers.
func (b *Book) isAnother(ctx context.Context) bool {
	now := dlq.NewLedger(b.topic, b.ledgerTopic, b.opts...)
	return now.Read(ctx, nil, nil) == nil && (now.TopicID() != b.ledger.TopicID() || b.failures >= tries)
}

func (b *Book) reset() {
	b.ledger, b.ledgerID, b.failures = nil, [16]byte{}, 0
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.partitions)
	clear(b.notes)
	clear(b.prunes)
	b.kinds, b.acts, b.complete, b.became = kinds{}, acts{}, time.Time{}, [11]int64{}
	b.changes++
}

// touch adds the letter that a record of the ledger is about, if the book has it. It keeps what
// people did.
func (b *Book) touch(touched []place, n *dlq.LedgerRecord) []place {
	if name, ok := strings.CutPrefix(n.Run, notesPrefix); ok {
		b.mu.Lock()
		if b.notes[name] = bytes.Clone(n.Record.Value); n.Record.Value == nil {
			delete(b.notes, name)
		}
		b.mu.Unlock()
		return touched
	}
	if n.Run != "" {
		b.mu.Lock()
		if b.prunes.add(n) {
			b.changes++
		}
		b.mu.Unlock()
	}
	_, isReport := n.DiscardReport()
	if n.Letter < 0 || n.Run != "" && !isReport || n.Note != nil {
		return touched
	}
	b.mu.Lock()
	b.acts.add(n)
	b.mu.Unlock()
	if p := b.partitions[n.Record.Partition]; p == nil || n.Letter >= p.next {
		return touched // it is read with its state
	}
	return append(touched, place{n.Record.Partition, n.Letter})
}

// begin drops what retention deleted and what the brokers lost, and moves a cursor to what was not
// read.
func (b *Book) begin(c *dlq.Cursor) {
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
		if end < p.next { // the log has lost its end, and is written anew from there
			p.cut(end)
			p.next = end
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
func (b *Book) readLetters(ctx context.Context, c dlq.Cursor) error {
	const batch = 1000
	pending := make([]*dlq.Letter, 0, batch)
	var problem error
	for l, err := range b.ledger.Letters(ctx, dlq.Filter{}, c, dlq.WithResolved) {
		if err != nil {
			problem = errors.Join(problem, err)
			continue
		}
		if pending = append(pending, l); len(pending) == batch {
			b.add(pending)
			pending = pending[:0]
		}
	}
	b.add(pending)
	if problem != nil {
		return problem
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, end := range c.End {
		p := b.partitions[id]
		p.next = max(p.next, end)
	}
	return nil
}

func (b *Book) add(letters []*dlq.Letter) {
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
		b.came(&is)
	}
	b.changes += uint64(len(letters))
}

// judge takes over the states of letters whose entries changed.
func (b *Book) judge(touched []place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := map[*rowChunk]bool{}
	for _, at := range touched {
		p := b.partitions[at.partition]
		chunk, i, ok := p.find(at.offset)
		if !ok {
			continue
		}
		c := p.chunks[chunk]
		was, state := c.row(i), b.ledger.State(at.partition, at.offset)
		if state == "" && was.copied {
			state = dlq.Duplicate
		}
		b.turned(was.state, stateNumber(state))
		c.setState(i, stateNumber(state))
		changed[c] = true
		b.changes++
	}
	for c := range changed {
		c.recount()
	}
}

// cut returns the beginning of a text, of n bytes at most, that is valid UTF-8.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
