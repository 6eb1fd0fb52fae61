package serve

import (
	"context"
	"fmt"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// tryRetention returns what the retention of a topic would do now. It changes nothing.
func (s *Server) tryRetention(ctx context.Context, in *request.Topic) (api.RetentionReport, error) {
	t, err := s.topicFor(ctx, in.Topic, access.Viewer)
	if err != nil {
		return api.RetentionReport{}, err
	}
	r, err := attend(ctx, s, t, func(ctx context.Context) (*RetentionReport, error) { return s.DryRunRetention(ctx, in.Topic) })
	return retentionAs(r, err)
}

// pruneLetters does now what the server does by the clock.
func (s *Server) pruneLetters(ctx context.Context, in *request.Topic) (api.RetentionReport, error) {
	t, err := s.topicFor(ctx, in.Topic, access.Admin)
	if err != nil {
		return api.RetentionReport{}, err
	}
	if _, err := s.runner.running(); err != nil {
		return api.RetentionReport{}, err
	}
	r, err := s.ApplyRetention(ctx, in.Topic, access.From(ctx).Name)
	if err == nil {
		s.refreshed(ctx, t)
	}
	return retentionAs(r, s.cluster.Denied(ctx, t, err))
}

func retentionAs(r *RetentionReport, err error) (api.RetentionReport, error) {
	if err != nil {
		return api.RetentionReport{}, problemOf(err)
	}
	is := api.RetentionReport{
		Topic: r.Topic, At: r.At.UTC(), Limits: r.Limits, Until: map[string]int64{}, Letters: r.Letters, Open: r.Open, Discarded: r.Discarded, Held: r.Held,
		Expiring: r.Expiring, Archives: listed(r.Archives), Waits: r.Waits,
	}
	for partition, offset := range r.Until {
		is.Until[fmt.Sprint(partition)] = offset
	}
	return is, nil
}
