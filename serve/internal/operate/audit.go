package operate

import (
	"context"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// ListActs returns who did what on a topic, the latest first.
func ListActs(ctx context.Context, d *Desk, who *access.Identity, in *request.Acts) ([]api.Act, error) {
	t, err := ViewTopic(ctx, d, who, in.Topic.Topic)
	if err != nil {
		return nil, err
	}
	did, err := TopicHistory(ctx, d, who, in.Topic.Topic)
	if err != nil {
		return nil, err
	}
	all := []api.Act{}
	for _, a := range did.Acts {
		all = append(all, api.Act{At: a.Last.UTC(), By: a.By, What: actName(a.State), Why: a.Why, Letters: a.Letters})
	}
	for i := range t.Runs {
		all = append(all, actsOf(&t.Runs[i])...)
	}
	for i := range did.Prunes {
		p := &did.Prunes[i]
		all = append(all, api.Act{At: p.At.UTC(), By: p.By, What: "deleted", Why: p.Why, Letters: p.Letters})
	}
	for _, a := range did.RuleActs {
		what := map[bool]string{true: "paused-rule", false: "resumed-rule"}[a.Paused]
		all = append(all, api.Act{At: a.At.UTC(), By: a.By, What: what, Why: a.Why, Rule: a.Rule})
	}
	slices.SortStableFunc(all, func(a, b api.Act) int { return b.At.Compare(a.At) })
	return all[:min(len(all), in.Limit)], nil
}

// actsOf returns who began a run, resumed it and aborted it.
func actsOf(o *redrive.Outcome) []api.Act {
	all := []api.Act{{At: o.Started.UTC(), By: o.By, What: "began-run", Why: o.Why, Letters: o.Counts.Selected, Run: o.ID}}
	for _, r := range resumptionsOf(o) {
		by, process := cutOwner(r.Owner)
		all = append(all, api.Act{At: r.At, By: by, Process: process, What: "resumed-run", Run: o.ID, Changed: r.Changed})
	}
	if cause, ok := strings.CutPrefix(o.Cause, "aborted by "); ok && o.State == redrive.Aborted {
		why, _ := strings.CutPrefix(strings.TrimPrefix(cause, o.Owner), ": ")
		by, process := cutOwner(o.Owner)
		all = append(all, api.Act{At: o.Ended.UTC(), By: by, Process: process, What: "aborted-run", Why: why, Run: o.ID})
	}
	return all
}

// cutOwner splits the name of a run's owner into who it is and through which process.
func cutOwner(owner string) (by, process string) {
	if i := strings.LastIndex(owner, " on "); i >= 0 {
		return owner[:i], owner[i+len(" on "):]
	}
	return owner, ""
}

func actName(s dlq.State) string {
	switch s {
	case dlq.Discarded:
		return "discarded"
	case dlq.Compensated:
		return "compensated"
	case dlq.Reopened:
		return "reopened"
	}
	return "recorded"
}
