package operate

import (
	"context"
	"slices"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// Topic is a dead-letter topic as a sender sees it.
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

// Roles returns the roles that a sender has, by topic. Topics without a role are missing. It costs
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

// ViewTopics returns the topics on which a sender has a role, by name.
func ViewTopics(d *Desk, who *access.Identity) (all []Topic) {
	for _, t := range topicsFor(d, who, access.Viewer) {
		all = append(all, topicAs(d, t, who))
	}
	return all
}

// ViewTopic returns one of the topics on which a sender has a role.
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

// summaryOf returns the topic as the API shows it.
func summaryOf(d *Desk, t *watch.Topic) api.Topic {
	sum, progress := t.Index.Summary(), t.Index.Progress()
	is := api.Topic{
		Topic: t.DeadLetterTopic.Topic, Source: t.Source, Criticality: t.Settings.Criticality, Owner: t.Settings.Owner, Runbook: t.Settings.Runbook, Note: t.Settings.Note, ManualOnly: t.Settings.ManualOnly, Unread: progress.Unread,
		Open: sum.Open, Pending: sum.Pending, Resolved: sum.Resolved, Duplicates: sum.Duplicates, Recent: watch.Total(t.Arrivals.Recent(time.Now(), t.Index.Flow().Written)),
		Known: timeOr(t.AsOf(&progress)), Oldest: timeOr(sum.Oldest), Newest: timeOr(sum.Newest), Run: t.Unfinished(),
	}
	is.Problem = d.cfg.Cluster.Trouble(t, progress.Problem)
	for _, kind := range watch.AlertKinds {
		// what cannot be read begins anew, and the log has it
		of, _ := incident.Parse(t.Index.Noted(watch.AlertNote(d.cfg.Group, kind.Name)))
		for _, text := range of.Unnotified(time.Now()) {
			is.Unnotified = append(is.Unnotified, failure.Outside(d.cfg.Redact, text))
		}
	}
	is.TopClass, is.Guards = topClass(sum.Groups), append([]api.Guard{}, d.cfg.Cluster.Guards.Of(t.Source)...)
	is.Stalled = append([]api.Stalled{}, d.cfg.Cluster.Guards.Stalled(t.Source)...)
	for i := range is.Guards {
		is.Guards[i].Class = d.cfg.Redact.Text(is.Guards[i].Class)
	}
	return is
}

// topClass returns the class with the most open letters; of several the first by name.
func topClass(groups []letterindex.Group) (top string) {
	open := map[string]int64{}
	for i := range groups {
		open[groups[i].Class] += groups[i].Open
	}
	for class, n := range open {
		if n > open[top] || n == open[top] && class < top {
			top = class
		}
	}
	return top
}

// ListTopics returns the topics, those with the most open letters first.
func ListTopics(ctx context.Context, d *Desk, who *access.Identity, _ *request.Nothing) ([]api.Topic, error) {
	all := []api.Topic{}
	for _, t := range topicsFor(d, who, access.Viewer) {
		all = append(all, summaryOf(d, t))
	}
	slices.SortStableFunc(all, func(a, b api.Topic) int { return int(min(max(b.Open-a.Open, -1), 1)) })
	return all, nil
}

// GetTopic returns a topic with its counts.
func GetTopic(ctx context.Context, d *Desk, who *access.Identity, in *request.Topic) (api.Topic, error) {
	t, err := TopicFor(ctx, d, who, in.Topic, access.Viewer)
	if err != nil {
		return api.Topic{}, err
	}
	return summaryOf(d, t), nil
}
