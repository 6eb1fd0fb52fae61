package dlq

import (
	"context"
	"errors"

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

// run reads, and reports whether the read came to its end, perhaps without the rest of stalled
// partitions.
func (s *scan) run(ctx context.Context, from Cursor) bool {
	left, err := freeze(ctx, s.topic, from, s.opts)
	if err != nil {
		return s.problem(err) && false
	}
	r := newReader(s.progress)
	r.add(s, left)
	r.read(ctx, s.opts, s.soon)
	return !r.failed[s.topic]
}
