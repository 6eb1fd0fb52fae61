package redrive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// A reader of the targets waits for an open transaction: 250 ms at most is the aim. So it is filled
// for 150 ms at most, with 20,000 letters at most, and with as many bytes as the connection carries
// in about 150 ms (see [load]). A letter that takes longer alone takes as long as it takes.
const (
	txnLength  = 150 * time.Millisecond // and what the commit takes
	txnLetters = 20_000
)

// transaction is what one of the two producers writes at once: copies of letters, the ledger's
// entries about them, and other records for the ledger.
type transaction struct {
	which    int
	cl       *kgo.Client
	began    time.Time
	copies   []*outgoing
	held     int64 // bytes of the copies
	bytes    int64 // and of all else
	full     bool  // it had no room for the next letter
	notes    []*kgo.Record
	reported []*kgo.Record // the ledger's entries about the copies

	sent      chan struct{} // closed once nothing of it is on its way, but for its end
	sending   time.Duration // what the copies took after the last was added
	reporting time.Duration // what the entries about them took

	mu     sync.Mutex
	failed map[*kgo.Record]error // of the copies that the client could not write
}

// outgoing is a letter in flight to its target.
type outgoing struct {
	letters.Place
	group string // whose it is; empty where that is not known
	size  int    // in bytes, with what the ledger is told of it
	copy  kgo.Record
}

// entryBytes is about the size of a letter's entry, and of what else a letter takes in memory.
const entryBytes = 300

// measure finds the size of a letter.
func (o *outgoing) measure() int {
	o.size = entryBytes + len(o.copy.Key) + len(o.copy.Value)
	for i := range o.copy.Headers {
		o.size += len(o.copy.Headers[i].Key) + len(o.copy.Headers[i].Value)
	}
	return o.size
}

// target is where the copy is, once it is acknowledged.
func (o *outgoing) target() headers.Position {
	return headers.Position{Topic: o.copy.Topic, Partition: o.copy.Partition, Offset: o.copy.Offset}
}

// fresh is the letter to be sent once more: a client keeps the record that it was given.
func (o *outgoing) fresh() *outgoing {
	c := *o
	c.copy.Offset, c.copy.Attrs = 0, kgo.RecordAttrs{}
	return &c
}

// unsent are records to be sent once more.
func unsent(notes []*kgo.Record) []*kgo.Record {
	again := make([]*kgo.Record, len(notes))
	for i, n := range notes {
		again[i] = &kgo.Record{Topic: n.Topic, Partition: n.Partition, Key: n.Key, Value: n.Value, Headers: n.Headers}
	}
	return again
}

// begin begins a transaction of one of the two producers.
func begin(cl *kgo.Client, which int) (*transaction, error) {
	if err := cl.BeginTransaction(); err != nil {
		return nil, fmt.Errorf("begin: %w: %w", txn.ErrUncertain, err)
	}
	return &transaction{which: which, cl: cl, began: time.Now(), sent: make(chan struct{}), failed: map[*kgo.Record]error{}}, nil
}

// add sends a copy.
func (t *transaction) add(o *outgoing) {
	t.copies = append(t.copies, o)
	t.held += int64(o.size)
	t.bytes = t.held
	t.cl.Produce(context.Background(), &o.copy, t.promise)
}

// promise takes the answer about a copy.
func (t *transaction) promise(r *kgo.Record, err error) {
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.failed[r] = err
	}
}

// ended is how a transaction ended.
type ended struct {
	*transaction
	committed bool
	// that the broker will not take, or the batches that they were in; nothing was written
	refused []*outgoing
	err     error
}

// err is what was answered about a copy, after the flush.
func (t *transaction) err(o *outgoing) error {
	if len(t.failed) == 0 {
		return nil
	}
	return t.failed[&o.copy]
}

// firstError is the first of what a client answers.
type firstError struct {
	once sync.Once
	err  error // to be read after a flush
}

func (f *firstError) promise(_ *kgo.Record, err error) {
	if err != nil {
		f.once.Do(func() { f.err = err })
	}
}

// isRefusal reports whether a broker, or the client, will not take this very record, or the batch
// that it is in.
func isRefusal(err error) bool { return refusal(err) != "" }

// refusal is why a letter is skipped that is refused; empty for other errors.
func refusal(err error) string {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return SkippedTooLarge
	case errors.Is(err, kerr.InvalidRecord), errors.Is(err, kerr.InvalidTimestamp):
		return SkippedRefused
	}
	return ""
}

// written are the records of a transaction that is committed.
func (t *transaction) written() iter.Seq[*kgo.Record] {
	return func(yield func(*kgo.Record) bool) {
		for _, o := range t.copies {
			if !yield(&o.copy) {
				return
			}
		}
		for _, r := range t.reported {
			if !yield(r) {
				return
			}
		}
	}
}

// sentLetters are those of a transaction that is committed, of the groups that are asked for.
func (t *transaction) sentLetters(of func(group string) bool) iter.Seq[inflight.Sent] {
	return func(yield func(inflight.Sent) bool) {
		for _, o := range t.copies {
			if of(o.group) && !yield(inflight.SentTo(o.Place, o.group, o.target())) {
				return
			}
		}
	}
}

// uncertain is an error of writing after which a run takes itself back: all but what would be
// refused again.
func uncertain(err error) error {
	if _, denied := errors.AsType[*permission.DeniedError](err); denied || err == nil || isRefusal(err) || errors.Is(err, txn.ErrUncertain) {
		return err
	}
	return fmt.Errorf("%w: %w", txn.ErrUncertain, err)
}
