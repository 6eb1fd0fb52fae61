package selection

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// Bounds of one look of a search.
const (
	searchBatch   = 1_000
	searchMost    = 20_000 // letters
	searchLongest = 5 * time.Second
)

// Search looks among open letters for one that fits, where only reading decides. It reads each
// letter that does not fit once: what a letter carries never changes. Its methods are safe for
// concurrent use, but for Find, which is for one goroutine at a time.
type Search struct {
	fits    func(*dlq.Letter) bool
	problem func() string

	mu sync.Mutex
	// not has the letters that do not fit: by partition and offset/64, a bit for each offset.
	not  map[Place]uint64
	read int64
	says string
}

// NewSearch returns a search for letters that fit. problem says on which of them that could not be
// decided.
func NewSearch(fits func(*dlq.Letter) bool, problem func() string) *Search {
	return &Search{fits: fits, problem: problem, not: map[Place]uint64{}}
}

// Progress returns how many letters were read, and what problem says of them.
func (s *Search) Progress() (read int64, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, s.says
}

// Left counts the open letters that may fit: those that a filter selects, but for those that were
// read and do not fit. The filter must be one that an index decides.
func (s *Search) Left(b *letterindex.Index, f *dlq.Filter) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for partition, offset := range letterindex.Open(b, f) {
		if !bit(s.not, partition, offset) {
			n++
		}
	}
	return n
}

// Find reads letters until one fits, up to 20,000 or for 5 seconds. The next call goes on there.
func (s *Search) Find(ctx context.Context, b *letterindex.Index, f *dlq.Filter, topic string, opts ...kgo.Opt) (found bool, err error) {
	until := time.Now().Add(searchLongest)
	for n := 0; n < searchMost; n += searchBatch {
		places := s.next(b, f)
		if len(places) == 0 {
			return false, nil
		}
		for l, err := range ReadAt(ctx, topic, places, opts...) {
			switch {
			case err != nil:
				return false, err
			case s.look(l):
				return true, nil
			case ctx.Err() != nil:
				return false, context.Cause(ctx)
			case time.Now().After(until):
				return false, nil
			}
		}
		s.mu.Lock()
		for _, at := range places { // some may have expired
			set(s.not, at.Partition, at.Offset)
		}
		s.mu.Unlock()
	}
	return false, nil
}

// look reports whether a letter fits, and keeps that it does not.
func (s *Search) look(l *dlq.Letter) bool {
	yes, says := s.fits(l), s.problem()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read++
	if s.says = says; !yes {
		set(s.not, l.Record.Partition, l.Record.Offset)
	}
	return yes
}

// next returns where the next letters are to be read. It forgets the letters that are not open any
// more.
func (s *Search) next(b *letterindex.Index, f *dlq.Filter) (places []Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[Place]uint64{}
	for partition, offset := range letterindex.Open(b, f) {
		switch {
		case bit(s.not, partition, offset):
			set(kept, partition, offset)
		case len(places) < searchBatch:
			places = append(places, Place{partition, offset})
		}
	}
	s.not = kept
	return places
}

func bit(of map[Place]uint64, partition int32, offset int64) bool {
	return of[Place{partition, offset / 64}]&(1<<(offset%64)) != 0
}

func set(of map[Place]uint64, partition int32, offset int64) {
	of[Place{partition, offset / 64}] |= 1 << (offset % 64)
}

// Place is where a letter is in its topic.
type Place struct {
	Partition int32
	Offset    int64
}

// nearOffsets is how far apart letters may be that are read in one go.
const nearOffsets = 1_000

// ReadAt yields the letters at some places of a topic, as [dlq.Read] does.
func ReadAt(ctx context.Context, topic string, places []Place, opts ...kgo.Opt) iter.Seq2[*dlq.Letter, error] {
	asked := map[Place]bool{}
	offsets := map[int32][]int64{}
	for _, at := range places {
		asked[at] = true
		offsets[at.Partition] = append(offsets[at.Partition], at.Offset)
	}
	f := dlq.Filter{Match: func(l *dlq.Letter) bool { return asked[Place{l.Record.Partition, l.Record.Offset}] }}
	for partition, all := range offsets {
		slices.Sort(all)
		for i, o := range all {
			if i > 0 && o-all[i-1] <= nearOffsets {
				f.Ranges[len(f.Ranges)-1].Until = o + 1
				continue
			}
			f.Ranges = append(f.Ranges, dlq.At(partition, o))
		}
	}
	return dlq.Read(ctx, topic, f, dlq.Cursor{}, opts...)
}
