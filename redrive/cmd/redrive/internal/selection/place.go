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
		return span{}, fmt.Errorf("%q is no number and no range: 3, 3-5, 3- or -5", s)
	case r.from > r.to:
		return span{}, fmt.Errorf("%q ends before it begins", s)
	}
	return r, nil
}

func parseNumber(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

// places are the offsets that are wanted of each partition. Nil is all of all.
type places map[int32][]span

func (ps places) has(partition int32, offset int64) bool {
	return slices.ContainsFunc(ps[partition], func(r span) bool { return r.has(offset) })
}

// parsePlaces reads the flags partition and offset. Of a partition with ranges those count; one without is whole.
func parsePlaces(partitions, offsets []string) (places, error) {
	if len(partitions)+len(offsets) == 0 {
		return nil, nil
	}
	ps := places{}
	var errs []error
	for _, s := range partitions {
		p, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			errs = append(errs, fmt.Errorf("--partition: %q is not the number of a partition", s))
			continue
		}
		ps[int32(p)] = nil
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
		if _, named := ps[int32(p)]; len(partitions) > 0 && !named {
			errs = append(errs, fmt.Errorf("--offset: partition %d is not among those of --partition: take one of the two out", p))
			continue
		}
		ps[int32(p)] = append(ps[int32(p)], r)
	}
	for p, ranges := range ps {
		if ranges == nil {
			ps[p] = []span{{0, math.MaxInt64}}
		}
	}
	return ps, errors.Join(errs...)
}

// Narrow leaves out of a frozen cursor what --partition and --offset rule out, so that it need not be read. What lies
// between two ranges is still within, and left to the filter. A partition of which nothing is left keeps its end: without
// any, a cursor would be of all there is.
func (s *Selection) Narrow(c dlq.Cursor) dlq.Cursor {
	if s.places == nil {
		return c
	}
	n := dlq.Cursor{Topic: c.Topic, At: map[int32]int64{}, End: map[int32]int64{}}
	for p, end := range c.End {
		if len(s.places[p]) == 0 {
			continue
		}
		first, last := int64(math.MaxInt64), int64(-1)
		for _, r := range s.places[p] {
			first, last = min(first, r.from), max(last, r.to)
		}
		first = max(first, c.At[p])
		if last < math.MaxInt64 {
			end = min(end, last+1)
		}
		n.At[p], n.End[p] = min(first, end), end
	}
	return n
}

// Missing are partitions that are asked for and that a topic with so many has not.
func (s *Selection) Missing(partitions int32) []int32 {
	all := slices.Sorted(maps.Keys(s.places))
	return slices.DeleteFunc(all, func(p int32) bool { return p < partitions })
}
