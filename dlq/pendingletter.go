package dlq

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
	r       *kgo.Record // the caller's
	headers []kgo.RecordHeader
	done    func(error)

	omit    bool                      // its value can be found elsewhere
	located func() []kgo.RecordHeader // the headers that say where, unless all of them do

	alone bool          // a batch that it was in was too large
	step  oversize.Step // what of it was omitted
}

// letter is a fresh record, since producing one changes it, and the caller's is still needed when
// this fails.
func (d *pendingLetter) letter(topic string) *kgo.Record {
	h, value := d.step.Of(d.headers, d.r.Value)
	return &kgo.Record{Topic: topic, Partition: d.r.Partition, Key: d.r.Key, Value: value, Headers: h}
}

// shrink omits the next part of a letter that was refused alone. limit is the client's own, in
// bytes before compression: a value is not left out for that one, since the broker might take it.
func (d *pendingLetter) shrink(limit int) bool {
	step, more := d.step.Next(d.headers, d.r.Value, d.omit && d.size() <= limit)
	if !more {
		return false
	}
	if step.Omits() && d.located != nil {
		d.headers, d.located = d.located(), nil
	}
	d.step = step
	return true
}

// size is no less than the letter takes as a batch of its own, before compression.
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

// from is where the record stands that the letter is made from.
func (d *pendingLetter) from() string {
	return fmt.Sprintf("%s/%d/%d", d.r.Topic, d.r.Partition, d.r.Offset)
}
