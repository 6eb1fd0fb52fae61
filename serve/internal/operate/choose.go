package operate

import (
	"context"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// choose returns a topic on which the sender of the request has a role, and a selection of its
// letters. A filter by what is in the records takes the role reader.
func choose(ctx context.Context, d *Desk, who *access.Identity, name string, f *api.Filter, least access.Role) (*watch.Topic, *selection.Selection, error) {
	if len(f.Key)+len(f.Header)+len(f.Where) > 0 {
		least = max(least, access.Reader)
	}
	t, err := TopicFor(ctx, d, who, name, least)
	if err != nil {
		return nil, nil, err
	}
	partitions := max(int32(t.Partitions), t.Index.Partitions()) // some may have come
	sel, err := selection.Compile(f, partitions, d.cfg.Redact)
	if err != nil {
		return nil, nil, failure.NewProblem(api.BadFilter, "%v", err)
	}
	return t, sel, nil
}

// chooseOpen is choose for what is done to open letters.
func chooseOpen(ctx context.Context, d *Desk, who *access.Identity, name string, f *api.Filter) (*watch.Topic, *selection.Selection, error) {
	if len(f.State) > 0 {
		return nil, nil, failure.NewProblem(api.BadFilter, "state: only open letters can be chosen here: leave it out")
	}
	return choose(ctx, d, who, name, f, access.Operator)
}
