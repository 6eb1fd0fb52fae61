package where

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sidingkafka/siding/dlq"
)

// Span is a range of numbers, both ends included.
type Span struct{ From, To int64 }

// Has reports whether a number is in the range.
func (r Span) Has(n int64) bool { return r.From <= n && n <= r.To }

// ParseSpan reads N, FROM-TO, FROM- and -TO.
func ParseSpan(s string) (Span, error) {
	from, to, ranged := strings.Cut(s, "-")
	r := Span{0, math.MaxInt64}
	var err1, err2 error
	if from != "" {
		r.From, err1 = parseNumber(from)
	}
	if !ranged {
		r.To = r.From
	} else if to != "" {
		r.To, err2 = parseNumber(to)
	}
	switch {
	case err1 != nil || err2 != nil || from == "" && to == "":
		return Span{}, fmt.Errorf("%q is not a number or a range such as 3, 3-5, 3- or -5", s)
	case r.From > r.To:
		return Span{}, fmt.Errorf("%q ends before it begins", s)
	}
	return r, nil
}

func parseNumber(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

// ParseRanges reads parts of a topic: numbers of partitions, and P:FROM-TO, P:OFFSET, P:FROM-,
// P:-TO. Of a partition with ranges those count; one without is whole. flag stands in errors before
// the names partition and offset.
func ParseRanges(flag string, partitions, offsets []string) ([]dlq.Range, error) {
	var ranges []dlq.Range
	var errs []error
	whole := map[int32]bool{} // of those that are named, and have no range
	for _, s := range partitions {
		p, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			errs = append(errs, fmt.Errorf(flag+"partition: %q is not the number of a partition", s))
			continue
		}
		whole[int32(p)] = true
	}
	for _, s := range offsets {
		number, text, ok := strings.Cut(s, ":")
		p, err := strconv.ParseUint(number, 10, 31)
		if err != nil || !ok {
			errs = append(errs, fmt.Errorf(flag+"offset: %q does not begin with a partition and a colon, as 3:100-200", s))
			continue
		}
		r, err := ParseSpan(text)
		if err != nil {
			errs = append(errs, fmt.Errorf(flag+"offset: partition %d: %w", p, err))
			continue
		}
		if _, named := whole[int32(p)]; len(partitions) > 0 && !named {
			errs = append(errs, fmt.Errorf(flag+"offset: partition %d is not among those of %spartition: take one of the two out", p, flag))
			continue
		}
		whole[int32(p)] = false
		// without a bound it is zero
		ranges = append(ranges, dlq.Range{Partition: int32(p), From: r.From, Until: (r.To + 1) & math.MaxInt64})
	}
	for _, p := range slices.Sorted(maps.Keys(whole)) {
		if whole[p] {
			ranges = append(ranges, dlq.Range{Partition: p})
		}
	}
	return ranges, errors.Join(errs...)
}
