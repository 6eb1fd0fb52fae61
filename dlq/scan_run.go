package dlq

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// all passes each record to take. whole reports whether the read came to its end, perhaps without
// the rest of stalled partitions. err joins all errors.
func (s *scan) all(ctx context.Context, from Cursor, take func(*kgo.Record)) (whole bool, err error) {
	var errs []error
	s.keep = func(r *kgo.Record) bool {
		take(r)
		return true
	}
	s.problem = func(err error) bool {
		errs = append(errs, err)
		return true
	}
	whole = s.run(ctx, from)
	return whole, errors.Join(errs...)
}

// some is all, but for the partitions whose bounds are not known. It returns those that were read
// to their ends.
func (s *scan) some(ctx context.Context, from Cursor, take func(*kgo.Record)) (ended map[int32]bool, err error) {
	s.partly = true
	_, err = s.all(ctx, from, take)
	return s.ended, err
}

// run reads, and reports whether the read came to its end, perhaps without the rest of stalled
// partitions.
func (s *scan) run(ctx context.Context, from Cursor) bool {
	cl := s.cl
	if cl == nil {
		var err error
		if cl, err = newScanClient(s.opts, s.soon); err != nil {
			s.problem(err)
			return false
		}
		defer cl.Close()
	}
	left, err := spansOf(ctx, kadm.NewClient(cl), s.topic, from)
	if err != nil && !(s.problem(err) && s.partly && len(left) > 0) {
		return false
	}
	r := newReader(s.progress)
	r.add(s, left)
	r.read(ctx, cl)
	s.ended = map[int32]bool{}
	for p := range left {
		if !r.short[part{s.topic, p}] {
			s.ended[p] = true
		}
	}
	return err == nil && !r.failed[s.topic]
}
