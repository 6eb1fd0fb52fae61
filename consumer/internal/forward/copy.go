package forward

// One copy, from its making to its acknowledgement.

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/oversize"
)

// Copy is a record that is written to a sibling. It is safe when all in-sync replicas have it. Only
// then is its original record finished.
//
// The context of the produced record leads back to the Copy. So kgo's promise finds it, even if a
// user's hook wraps that context.
type Copy struct {
	of        *Copies // set by Send
	from      Origin
	offset    int64
	rec       kgo.Record // belongs to kgo from the first try on
	written   []kgo.RecordHeader
	size      int64
	tries     int32 // refused ones
	checks    int8  // of its partition, see growthChecks
	partition int32 // the lane's; a note's is that of the letter
	effort    effort
	note      bool          // for a ledger, see NewNote
	required  bool          // never abandoned for want of a ledger
	shrunk    oversize.Step // how much of it is omitted
	via       handover      // to the client that has it, or had it last
}

// NewCopy makes the copy of the record at an offset of from. rec is sent as it is.
func NewCopy(from Origin, offset int64, rec kgo.Record) *Copy {
	return &Copy{from: from, offset: offset, rec: rec}
}

// NewNote makes a note for a ledger, which must be safe before the record at an offset of from is
// finished. It goes to the partition that rec names. If no ledger accepts it, it is abandoned and
// the record finished, unless it is required: then it is written as soon as there is a ledger.
func NewNote(from Origin, offset int64, rec kgo.Record, required bool) *Copy {
	return &Copy{from: from, offset: offset, rec: rec, note: true, required: required}
}

// From returns the partition that the original record was read from.
func (c *Copy) From() Origin { return c.from }

// Offset returns the offset at which the original record was read.
func (c *Copy) Offset() int64 { return c.offset }

// To returns the topic that the copy is written to.
func (c *Copy) To() string { return c.rec.Topic }

// Key returns the record's key.
func (c *Copy) Key() []byte { return c.rec.Key }

// Value returns the record's value, also if the copy omits it.
func (c *Copy) Value() []byte { return c.rec.Value }

// Size returns the approximate memory of the whole copy, in bytes. It is zero before Send.
func (c *Copy) Size() int64 { return c.size }

// IsNote reports whether the copy is a note for a ledger.
func (c *Copy) IsNote() bool { return c.note }

// Whole returns the copy's headers before anything was omitted.
func (c *Copy) Whole() []kgo.RecordHeader { return c.written }

// Headers returns the headers that the copy is written with.
func (c *Copy) Headers() []kgo.RecordHeader {
	h, _ := c.shrunk.Of(c.written, nil)
	return h
}

type copyKey struct{}

// copyOf returns the copy that a record of kgo stands for; nil for any other record.
func copyOf(r *kgo.Record) *Copy {
	c, _ := r.Context.Value(copyKey{}).(*Copy)
	return c
}

// copyContext is the context of a copy's record. It ends when the lane abandons the copies that
// were not sent.
type copyContext struct{ c *Copy }

var _ context.Context = copyContext{}

func (x copyContext) Deadline() (time.Time, bool) { return x.c.of.Context.Deadline() }
func (x copyContext) Done() <-chan struct{}       { return x.c.of.Context.Done() }
func (x copyContext) Err() error                  { return x.c.of.Context.Err() }
func (x copyContext) Value(key any) any {
	if key == (copyKey{}) {
		return x.c
	}
	return nil
}

// at returns the partition that the copy is written to.
func (c *Copy) at() partition { return partition{c.rec.Topic, c.partition} }

// producers returns the clients that write the copy.
func (c *Copy) producers() *producers { return &c.of.Clients.by[c.effort] }

// nextRecord makes the record of the next try. It is a new one each time: kgo changes and keeps a
// record that it was given.
func (c *Copy) nextRecord() *kgo.Record {
	h, value := c.shrunk.Of(c.written, c.rec.Value)
	return &kgo.Record{Topic: c.rec.Topic, Partition: c.partition, Key: c.rec.Key, Value: value, Headers: h}
}

// noteTries is how often a note is tried whose ledger or partition does not exist: for three
// quarters of a minute. The lane waits meanwhile, and its health gives the reason.
const noteTries = 8

// unwritable reports whether to abandon a note. Made-up headers may name a ledger that does not
// exist, and must not hold up a lane for ever. No outcome becomes wrong by it: a run without its
// ledger has none. A note that is too large for its ledger waits instead, until an operator raises
// the ledger's max.message.bytes: the run would count the letter as succeeded.
func (c *Copy) unwritable(err error) bool {
	if !c.note || c.required {
		return false
	}
	code := (*kerr.Error)(nil)
	nowhere := errors.Is(err, kerr.UnknownTopicOrPartition) || c.partition != c.of.Partition && !errors.As(err, &code)
	return nowhere && c.tries >= noteTries
}

// RecordSize returns the approximate memory of a record, in bytes.
func RecordSize(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value) + 64
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value) + 40
	}
	return int64(n)
}
