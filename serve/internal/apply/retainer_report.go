package apply

import (
	"context"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// Try returns what the retention of a topic would do now. It changes nothing.
func (k *Retainer) Try(ctx context.Context, who *access.Identity, in *request.Topic) (api.RetentionReport, error) {
	t, err := operate.TopicFor(ctx, k.cfg.Desk, who, in.Topic, access.Viewer)
	if err != nil {
		return api.RetentionReport{}, err
	}
	r, err := operate.Attend(ctx, k.cfg.Desk, t, func(ctx context.Context) (api.RetentionReport, error) { return k.DryRun(ctx, in.Topic) })
	return shown(r, err)
}

// Prune does now what the server does by the clock.
func (k *Retainer) Prune(ctx context.Context, who *access.Identity, in *request.Topic) (api.RetentionReport, error) {
	t, err := operate.TopicFor(ctx, k.cfg.Desk, who, in.Topic, access.Admin)
	if err != nil {
		return api.RetentionReport{}, err
	}
	if _, err := k.cfg.Desk.Runner.Running(); err != nil {
		return api.RetentionReport{}, err
	}
	r, err := k.Apply(ctx, in.Topic, who.Name)
	if err == nil {
		operate.Refreshed(ctx, k.cfg.Desk, t)
	}
	return shown(r, k.cfg.Cluster.Denied(ctx, t, err))
}

// shown returns a report, or the problem.
func shown(r api.RetentionReport, err error) (api.RetentionReport, error) {
	if err != nil {
		return api.RetentionReport{}, failure.ProblemOf(err)
	}
	return r, nil
}
