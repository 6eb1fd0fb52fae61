package selection

import (
	"fmt"
	"slices"

	"github.com/sidingkafka/siding/dlq"
	letterset "github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/serve/where"
)

// A Selection chooses dead letters.
type Selection struct {
	// Filter decides about each letter. It is for one goroutine at a time.
	Filter dlq.Filter
	// Where is the expression of --where, or nil.
	Where *where.Expression
	// Decode returns a letter as the expression sees it; nil leaves it as it is.
	Decode func(*dlq.Letter) *dlq.Letter
}

// where reports whether the expression selects a letter.
func (s *Selection) where(l *dlq.Letter) bool {
	if s.Where == nil {
		return true
	}
	if s.Decode != nil {
		l = s.Decode(l)
	}
	return s.Where.Match(l)
}

// Missing returns the partitions that the flags name and that a topic with so many does not have.
func (s *Selection) Missing(partitions int32) (gone []int32) {
	for _, r := range s.Filter.Ranges {
		if r.Partition >= partitions && !slices.Contains(gone, r.Partition) {
			gone = append(gone, r.Partition)
		}
	}
	slices.Sort(gone)
	return gone
}

// WhereProblem reports on how many letters the expression failed so far; it is empty if it never
// did. Without quotes it names the first of them, and not the error, which may quote the letter.
func (s *Selection) WhereProblem(quotes bool) string {
	if s.Where == nil || s.Where.Failed == 0 {
		return ""
	}
	if !quotes {
		return fmt.Sprintf("--where failed on %d of the letters, which are not chosen; the first: %s (the reason is hidden, since it may quote the letter: --no-redact shows it)", s.Where.Failed, s.Where.FirstAt)
	}
	return fmt.Sprintf("--where failed on %d of the letters, which are not chosen; the first: %v", s.Where.Failed, s.Where.First)
}

// Only returns a filter that selects letters of a set alone, and counts the others that fit.
func Only(of letterset.Set, f dlq.Filter) (filter dlq.Filter, others *int64) {
	others = new(int64)
	fits := f.Match
	f.Match = func(l *dlq.Letter) bool {
		if fits != nil && !fits(l) {
			return false
		}
		if of.Has(letterset.At(l.Record.Partition, l.Record.Offset)) {
			return true
		}
		*others++
		return false
	}
	return f, others
}
