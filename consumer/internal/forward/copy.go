package forward

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/oversize"
)

// Copy is a record that is written to a sibling. It is safe when all in-sync replicas have it; only
// then is the record finished that it stands for.
//
// It is also the context of its produced record, by which kgo's promise finds it, whatever the
// user's hooks wrap around.
type Copy struct {
	of        *Copies // since it is sent
	from      Origin
	offset    int64
	rec       kgo.Record // kgo's from the first try on
	written   []kgo.RecordHeader
	size      int64
	tries     int32         // that were refused
	checks    int8          // for its partition, see growthChecks
	partition int32         // the lane's; of a note the letter's
	alone     bool          // it goes by the single sender: a batch that it was in was too large
	note      bool          // for a ledger, see NewNote
	shrunk    oversize.Step // what of it is omitted
	via       handover      // the client that has it, or had it last
}

// NewCopy makes the copy of a record, by offset, that is sent as it is given.
func NewCopy(from Origin, offset int64, rec kgo.Record) *Copy {
	return &Copy{from: from, offset: offset, rec: rec}
}

// NewNote makes the note for a ledger that has to be safe before a record, by offset, is finished.
// It goes to the partition that it names, and is given up where no ledger takes it.
func NewNote(from Origin, offset int64, rec kgo.Record) *Copy {
	return &Copy{from: from, offset: offset, rec: rec, note: true}
}

// From returns where the copy's record was read.
func (c *Copy) From() Origin { return c.from }

// Offset returns the offset at which it was read.
func (c *Copy) Offset() int64 { return c.offset }

// To returns the topic that the copy is written to.
func (c *Copy) To() string { return c.rec.Topic }

// Key returns the record's key.
func (c *Copy) Key() []byte { return c.rec.Key }

// Value returns the record's value, whether or not it fits into the copy.
func (c *Copy) Value() []byte { return c.rec.Value }

// Size returns about how many bytes the whole copy has in memory.
func (c *Copy) Size() int64 { return c.size }

// IsNote reports whether the copy is a note for a ledger.
func (c *Copy) IsNote() bool { return c.note }

// Whole returns the copy's headers as they were made.
func (c *Copy) Whole() []kgo.RecordHeader { return c.written }

// Headers returns the headers that the copy is written with.
func (c *Copy) Headers() []kgo.RecordHeader {
	h, _ := c.shrunk.Of(c.written, nil)
	return h
}

type copyKey struct{}

// copyOf returns the copy that kgo was given as the record; nil for any other record.
func copyOf(r *kgo.Record) *Copy {
	c, _ := r.Context.Value(copyKey{}).(*Copy)
	return c
}

// copyContext is a copy as the context of its record. It ends when the lane abandons what was not
// sent.
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

// at is where the copy goes.
func (c *Copy) at() partition { return partition{c.rec.Topic, c.partition} }

// producers are the clients that the copy goes by.
func (c *Copy) producers() *producers {
	if c.alone {
		return &c.of.Clients.single.producers
	}
	return &c.of.Clients.batched
}

// nextRecord is the record of the next try, a fresh one, since kgo changes and keeps what it is
// given.
func (c *Copy) nextRecord() *kgo.Record {
	h, value := c.shrunk.Of(c.written, c.rec.Value)
	return &kgo.Record{Topic: c.rec.Topic, Partition: c.partition, Key: c.rec.Key, Value: value, Headers: h}
}

// noteTries is how often a note is tried for which there is no place: for three quarters of a
// minute. The lane waits so long, and health says what for.
const noteTries = 8

// unwritable reports whether a note need not be tried again. Without a ledger, or with one that
// takes no entry, no run can be told anything, and made-up headers must not hold up a lane for
// ever. A run has no outcome without its ledger, so none is wrong.
func (c *Copy) unwritable(err error) bool {
	if !c.note {
		return false
	}
	code := (*kerr.Error)(nil)
	nowhere := errors.Is(err, kerr.UnknownTopicOrPartition) || c.partition != c.of.Partition && !errors.As(err, &code)
	return oversize.Refused(err) && c.alone || nowhere && c.tries >= noteTries
}

// RecordSize returns what a record takes in memory, roughly, in bytes.
func RecordSize(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value) + 64
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value) + 40
	}
	return int64(n)
}
