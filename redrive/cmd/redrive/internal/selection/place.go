package selection

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

// A span is a range of numbers, both ends included.
type span struct{ from, to int64 }

func (r span) has(n int64) bool { return r.from <= n && n <= r.to }

// parseRange reads N, FROM-TO, FROM- and -TO.
func parseRange(s string) (span, error) {
	from, to, ranged := strings.Cut(s, "-")
	r := span{0, math.MaxInt64}
	var err1, err2 error
	if from != "" {
		r.from, err1 = parseNumber(from)
	}
	if !ranged {
		r.to = r.from
	} else if to != "" {
		r.to, err2 = parseNumber(to)
	}
	switch {
	case err1 != nil || err2 != nil || from == "" && to == "":
		return span{}, fmt.Errorf("%q is not a number or a range such as 3, 3-5, 3- or -5", s)
	case r.from > r.to:
		return span{}, fmt.Errorf("%q ends before it begins", s)
	}
	return r, nil
}

func parseNumber(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

// parseRanges reads the flags partition and offset. Of a partition with ranges those count; one
// without is whole.
func parseRanges(partitions, offsets []string) ([]dlq.Range, error) {
	var ranges []dlq.Range
	var errs []error
	whole := map[int32]bool{} // of those that are named, and have no range
	for _, s := range partitions {
		p, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			errs = append(errs, fmt.Errorf("--partition: %q is not the number of a partition", s))
			continue
		}
		whole[int32(p)] = true
	}
	for _, s := range offsets {
		number, text, ok := strings.Cut(s, ":")
		p, err := strconv.ParseUint(number, 10, 31)
		if err != nil || !ok {
			errs = append(errs, fmt.Errorf("--offset: %q does not begin with a partition and a colon, as 3:100-200", s))
			continue
		}
		r, err := parseRange(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--offset: partition %d: %w", p, err))
			continue
		}
		if _, named := whole[int32(p)]; len(partitions) > 0 && !named {
			errs = append(errs, fmt.Errorf("--offset: partition %d is not among those of --partition: take one of the two out", p))
			continue
		}
		whole[int32(p)] = false
		// without a bound it is zero
		ranges = append(ranges, dlq.Range{Partition: int32(p), From: r.from, Until: (r.to + 1) & math.MaxInt64})
	}
	for _, p := range slices.Sorted(maps.Keys(whole)) {
		if whole[p] {
			ranges = append(ranges, dlq.Range{Partition: p})
		}
	}
	return ranges, errors.Join(errs...)
}
