package consumer

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
)

// attempts are the runs of a unit's records, one after another, in one piece of memory.
type attempts struct {
	from *origin
	recs []*kgo.Record // as the handler sees them
	meta *headers.Meta // from the headers of a single record; nil for records that never failed
	each []attempt
	// at is twice the index of the attempt that began last, and one more when it has ended. Each
	// attempt before it has ended. One store thus ends an attempt and begins the next.
	at atomic.Int64
	// The coarse readings at which the first attempt began, and the last one. Few attempts of a unit
	// have a reading of their own. The last one's changes before at.
	first int64
	last  atomic.Int64
	// One more than the first offset of those that the unit has finished, and the tracker lacks; 0 if
	// there is none. They reach to the attempt that began last. It changes before at.
	unreported atomic.Int64
	rare       atomic.Pointer[[]rareSlot] // of several attempts, once one of them has any

	one struct {
		attempt [1]attempt
		rec     [1]*kgo.Record
		rare    rareSlot
	}
}

// of sets the records.
func (s *attempts) of(from *origin, recs []*kgo.Record) {
	s.from, s.recs, s.each = from, recs, make([]attempt, len(recs))
}

// ofOne sets a single record.
func (s *attempts) ofOne(from *origin, rec *kgo.Record, meta *headers.Meta) *attempt {
	s.one.rec[0] = rec
	s.from, s.recs, s.each, s.meta = from, s.one.rec[:], s.one.attempt[:], meta
	return &s.one.attempt[0]
}

// begin begins the attempt with an index, and ends the one before it.
func (s *attempts) begin(i int, reading int64) *attempt {
	a := &s.each[i]
	a.in = s
	if i == 0 {
		s.first = reading
	}
	if s.last.Load() != reading {
		s.last.Store(reading) // a store costs more than all the rest
	}
	s.at.Store(2 * int64(i))
	if i > 0 && s.rare.Load() != nil {
		s.slot(i - 1).cancel()
	}
	return a
}

// index returns the index of an attempt that has begun. Offsets ascend.
func (s *attempts) index(a *attempt) int {
	i := int(s.at.Load() / 2)
	if a != &s.each[i] {
		i, _ = slices.BinarySearchFunc(s.each[:i], a.off, func(b attempt, off int64) int { return cmp.Compare(b.off, off) })
	}
	return i
}

// slot returns where the rare parts of the attempt with an index are; nil before any attempt has
// some.
func (s *attempts) slot(i int) *rareSlot {
	if len(s.each) == 1 {
		return &s.one.rare
	}
	if all := s.rare.Load(); all != nil {
		return &(*all)[i]
	}
	return nil
}

// running are the attempts of which one runs.
type running struct{ atomic.Pointer[attempts] }

// attempt returns the attempt that began last, nil if none runs.
func (r *running) attempt() *attempt {
	if s := r.Load(); s != nil {
		return &s.each[s.at.Load()/2]
	}
	return nil
}

// finished returns the offsets that the unit has finished, and the tracker lacks. The caller holds
// the lane's lock, under which the tracker gets them. So what began meanwhile makes them fewer, but
// never includes a record that is not finished.
func (r *running) finished() (offsets.Span, bool) {
	s := r.Load()
	if s == nil {
		return offsets.Span{}, false
	}
	last := s.each[s.at.Load()/2].off - 1
	first := s.unreported.Load() - 1
	return offsets.Span{First: first, Last: last}, first >= 0 && first <= last
}
