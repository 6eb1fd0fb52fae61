package redrive

// The letters of one transaction.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// A reader of the targets waits for an open transaction; the aim is at most 250 ms. So a
// transaction is filled for 150 ms at most, with at most 20,000 letters and as many bytes as the
// connection carries in about 150 ms (see [load]). A single large letter may take longer.
const (
	txnLength  = 150 * time.Millisecond // without the commit
	txnLetters = 20_000
)

// transaction is one transaction of a producer: copies of letters, their ledger entries, and other
// ledger records.
type transaction struct {
	which     int
	cl        *kgo.Client
	began     time.Time
	redriveAt []byte // the time in the copies' fields
	copies    []*outgoing
	held      int64 // bytes of the copies
	bytes     int64 // bytes of all other records
	full      bool  // without room for the next letter
	notes     []*kgo.Record
	written   []*kgo.Record // copies and their entries

	sent      chan struct{} // closed when all records are acknowledged, before the commit
	sending   time.Duration // time for the copies after the last was added
	reporting time.Duration // time for the entries

	// promise, since each use of a method as a value allocates
	answered func(*kgo.Record, error)

	mu     sync.Mutex
	failed map[*kgo.Record]error // records that the client could not write; valid after the flush

	// set at the end
	committed bool
	// letters in batches that the broker refused; then the transaction wrote nothing
	refused []*outgoing
	err     error
}

// outgoing is a letter in flight to its target.
type outgoing struct {
	letters.Place
	group string // the failing group; empty if unknown
	size  int    // bytes, with the entry
	// index of the header with the fields; the last one is the time of the redrive, which is that
	// of the transaction: a copy may wait for hours until the run goes on
	meta  int
	tight bool // it was refused alone, and is compressed with more effort since
	copy  kgo.Record
}

// entryBytes is the approximate size of a letter's entry and of the letter's other memory.
const entryBytes = 300

// measure sets the size of a letter.
func (o *outgoing) measure() int {
	o.size = entryBytes + len(o.copy.Key) + len(o.copy.Value)
	for i := range o.copy.Headers {
		o.size += len(o.copy.Headers[i].Key) + len(o.copy.Headers[i].Value)
	}
	return o.size
}

// target returns the position of the acknowledged copy.
func (o *outgoing) target() headers.Position {
	return headers.Position{Topic: o.copy.Topic, Partition: o.copy.Partition, Offset: o.copy.Offset}
}

// fresh returns a copy of the letter for another try, because a client keeps records that it was
// given.
func (o *outgoing) fresh() *outgoing {
	c := *o
	c.copy.Offset, c.copy.Attrs = 0, kgo.RecordAttrs{}
	return &c
}

// tightened is fresh for the strongest codec.
func (o *outgoing) tightened() *outgoing {
	c := o.fresh()
	c.tight = true
	return c
}

var history = reserved.SetOf(reserved.History)

func (o *outgoing) hasHistory() bool { return reserved.Any(o.copy.Headers, history) }

// withoutHistory is fresh without the history, which the letter keeps.
func (o *outgoing) withoutHistory() *outgoing {
	c := o.fresh()
	c.copy.Headers = reserved.Without(c.copy.Headers, history)
	return c
}

// setSent sets the time of the redrive, in Unix milliseconds.
func (o *outgoing) setSent(at []byte) {
	meta := &o.copy.Headers[o.meta].Value
	begin := bytes.LastIndexByte(*meta, '=') + 1
	*meta = append(append((*meta)[:begin], at...), ';')
}

// unsent returns copies of records for another try.
func unsent(notes []*kgo.Record) []*kgo.Record {
	again := make([]*kgo.Record, len(notes))
	for i, n := range notes {
		again[i] = &kgo.Record{Topic: n.Topic, Partition: n.Partition, Key: n.Key, Value: n.Value, Headers: n.Headers}
	}
	return again
}

// add sends a copy.
func (t *transaction) add(o *outgoing) {
	if t.redriveAt == nil {
		t.redriveAt = strconv.AppendInt(nil, t.began.UnixMilli(), 10)
	}
	o.setSent(t.redriveAt)
	t.copies = append(t.copies, o)
	t.held += int64(o.size)
	t.bytes = t.held
	t.write(context.Background(), &o.copy)
}

// write writes a copy or its entry.
func (t *transaction) write(ctx context.Context, r *kgo.Record) {
	t.written = append(t.written, r)
	t.cl.Produce(ctx, r, t.answered)
}

// promise handles the answer about a record.
func (t *transaction) promise(r *kgo.Record, err error) {
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.failed[r] = err
	}
}

// refusal returns the reason for skipping a letter whose copy the broker or the client refuses for
// good, alone or with its batch; empty for other errors.
func refusal(err error) string {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return SkippedTooLarge
	case errors.Is(err, kerr.InvalidRecord), errors.Is(err, kerr.InvalidTimestamp):
		return SkippedRefused
	}
	return ""
}

// uncertain wraps ErrUncertain into an error of writing, so that the run takes itself back.
// Permission errors stay as they are, because a retry would be refused too.
func uncertain(err error) error {
	if _, denied := errors.AsType[*permission.DeniedError](err); denied || err == nil || refusal(err) != "" || errors.Is(err, txn.ErrUncertain) {
		return err
	}
	return fmt.Errorf("%w: %w", txn.ErrUncertain, err)
}
