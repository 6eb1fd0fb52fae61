package run

import (
	"context"
	"maps"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// planRun makes the plan that the flags ask for, and the engine that can run it.
func planRun(ctx context.Context, s *cli.Session, topic string, i *runFlags, asked asked) (*redrive.Redriver, *redrive.Plan, error) {
	if _, _, err := subject.Choose(ctx, s, topic, asked.letters); err != nil {
		return nil, nil, err
	}
	r, err := s.Redriver()
	if err != nil {
		return nil, nil, err
	}
	warnOfOutcomes := subject.WriteOutcomes(ctx, s.Tool, r, topic)
	s.Screen.Status("reading %s …", topic)
	p, err := r.Plan(ctx, redrive.Selection{Topic: topic, Filter: asked.letters.Filter, Target: i.target, MaxRedrives: orNone(i.maxRedrives), MaxAttempts: i.maxAttempts, Edit: asked.edit})
	subject.WarnOfWhere(s.Tool, asked.letters)
	if err == nil {
		subject.WarnOfClasses(s.Tool, topic, asked.letters, maps.Keys(p.ByClass))
		warnOfOutcomes()
	}
	return r, p, err
}
