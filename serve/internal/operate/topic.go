package operate

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// Topic is a dead-letter topic as somebody sees it.
type Topic struct {
	api.Topic
	// Role is the role on it.
	Role access.Role
	// Silent reports that nothing came of the brokers since Known, which is too long ago.
	Silent bool
	// Alerts are the thresholds that it exceeds.
	Alerts []incident.Alert
	// Retention is how long Kafka keeps its letters; zero if for ever, or if that is not known.
	Retention time.Duration
	// Runs are its runs.
	Runs []redrive.Outcome
}

// Roles returns the roles that somebody has, by topic. Topics without a role are missing. It costs
// next to nothing.
func Roles(d *Desk, who *access.Identity) map[string]access.Role {
	all := map[string]access.Role{}
	for name := range d.cfg.Cluster.All() {
		if role := who.On(name); role >= access.Viewer {
			all[name] = role
		}
	}
	return all
}

// ViewTopics returns the topics on which somebody has a role, by name.
func ViewTopics(d *Desk, who *access.Identity) (all []Topic) {
	for _, t := range topicsFor(d, who, access.Viewer) {
		all = append(all, topicAs(d, t, who))
	}
	return all
}

// ViewTopic returns one of the topics on which somebody has a role.
func ViewTopic(ctx context.Context, d *Desk, who *access.Identity, name string) (Topic, error) {
	t, err := TopicFor(ctx, d, who, name, access.Viewer)
	if err != nil {
		return Topic{}, err
	}
	return topicAs(d, t, who), nil
}

func topicAs(d *Desk, t *watch.Topic, who *access.Identity) Topic {
	now := time.Now()
	is := Topic{
		Topic: summaryOf(d, t), Role: who.On(t.DeadLetterTopic.Topic), Silent: !t.SilentSince(d.cfg.Cluster.Pulse).IsZero(), Retention: t.Keeps(), Runs: t.Known(),
	}
	f, limits := watch.FiguresOf(t, now, d.RuleList()), t.Settings.Thresholds
	for _, kind := range watch.AlertKinds {
		if a := kind.Due(&f, limits, now); a != nil {
			is.Alerts = append(is.Alerts, *a)
		}
	}
	for i := range is.Runs { // what people wrote about a run, and errors, may quote letters
		r := &is.Runs[i]
		r.Why, r.Cause, r.Waiting = d.cfg.Redact.Text(r.Why), failure.Outside(d.cfg.Redact, r.Cause), failure.Outside(d.cfg.Redact, r.Waiting)
	}
	return is
}
