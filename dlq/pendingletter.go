package dlq

// A letter that is not written yet, and the steps by which it shrinks.

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/oversize"
)

// pendingLetter is a letter that is not written yet.
type pendingLetter struct {
	ctx     context.Context
	r       *kgo.Record // belongs to the caller
	headers []kgo.RecordHeader
	done    func(error)

	omit bool // the value may be omitted: it can be read elsewhere

	alone bool          // its batch was too large
	step  oversize.Step // how much of it is omitted
}

// letter makes the record to produce. It is a new one each time: producing changes a record, and
// the caller's is needed for the next try.
func (d *pendingLetter) letter(topic string) *kgo.Record {
	h, value := d.step.Of(d.headers, d.r.Value)
	return &kgo.Record{Topic: topic, Partition: d.r.Partition, Key: d.r.Key, Value: value, Headers: h}
}

// shrink omits the next part of a letter that was refused alone. limit is the client's own, in
// bytes before compression. The value is not omitted because of that limit: the broker might accept
// the letter.
func (d *pendingLetter) shrink(limit int) bool {
	step, more := d.step.Next(d.headers, d.r.Value, d.omit && d.size() <= limit)
	if !more {
		return false
	}
	d.step = step
	return true
}

// size returns an upper bound of the letter's size as a batch of its own, in bytes before
// compression.
func (d *pendingLetter) size() int {
	const (
		batch  = 61 // what comes before the records
		number = binary.MaxVarintLen32
		record = number + 1 + binary.MaxVarintLen64 + number // length, attributes, time, offset
	)
	h, value := d.step.Of(d.headers, d.r.Value)
	n := batch + record + number + len(d.r.Key) + number + len(value) + number
	for i := range h {
		n += number + len(h[i].Key) + number + len(h[i].Value)
	}
	return n
}

// from returns the position of the record that the letter is made from.
func (d *pendingLetter) from() string {
	return fmt.Sprintf("%s/%d/%d", d.r.Topic, d.r.Partition, d.r.Offset)
}
