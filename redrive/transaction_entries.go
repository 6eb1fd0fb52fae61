package redrive

// The ledger entries of a transaction.

import (
	"bytes"
	"math"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// entries makes the entries about a transaction's copies. Those on one partition differ in the
// offset alone, so the text around it is made once. Records and texts come from larger allocations.
type entries struct {
	ledger string
	// what all have, and what the last one had; its target has the offset noOffset
	entry         dlq.Entry
	before, after []byte // its text, around the offset

	out  []kgo.Record
	text []byte
}

// noOffset stands for the offset of a copy. No copy has it.
const noOffset = math.MaxInt64

var noOffsetText = strconv.AppendInt(nil, noOffset, 10)

// record returns the record of the entry about a letter.
func (s *entries) record(o *outgoing, state dlq.State, epochs int32) *kgo.Record {
	const offsets = 2 * 20
	e := &s.entry
	if to := &e.Target; s.before == nil || e.State != state || e.Epochs != epochs || to.Partition != o.copy.Partition || to.Topic != o.copy.Topic {
		e.State, e.Epochs, e.Target = state, epochs, o.target()
		e.Target.Offset = noOffset
		value := e.Record(s.ledger, 0, 0).Value
		at := bytes.LastIndex(value, noOffsetText) // what follows the target has no numbers
		s.before, s.after = value[:at], value[at+len(noOffsetText):]
	}
	if need := len(s.before) + len(s.after) + offsets; cap(s.text)-len(s.text) < need {
		s.text = make([]byte, 0, max(16<<10, need))
	}
	if len(s.out) == 0 {
		s.out = make([]kgo.Record, 100)
	}
	var r *kgo.Record
	r, s.out = &s.out[0], s.out[1:]
	r.Topic, r.Partition = s.ledger, o.Partition
	b := strconv.AppendInt(s.text[len(s.text):], o.Offset, 10)
	n := len(b)
	b = append(strconv.AppendInt(append(b, s.before...), o.copy.Offset, 10), s.after...)
	r.Key, r.Value = b[:n:n], b[n:len(b):len(b)]
	s.text = s.text[:len(s.text)+len(b)]
	return r
}
