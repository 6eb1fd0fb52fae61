package operate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// NotListed is the answer while a server that has just started knows no topic.
const NotListed = "the dead-letter topics are not known yet: ask again; the server's log says if something is wrong"

// TopicFor returns a topic on which the sender of the request has a role. To a page that was left
// open over a restart a server that knows no topic yet must not say that there is none.
func TopicFor(ctx context.Context, d *Desk, who *access.Identity, name string, least access.Role) (*watch.Topic, error) {
	has := who.On(name)
	t := d.cfg.Cluster.Topic(name)
	if t == nil && has != access.None {
		if !d.cfg.Cluster.AwaitListed(ctx) {
			return nil, failure.NewProblem(api.NotRunning, NotListed)
		}
		t = d.cfg.Cluster.Topic(name)
	}
	switch {
	case has == access.None || t == nil:
		return nil, failure.NewProblem(api.NoTopic, "there is no dead-letter topic %q that %s may see", name, who.Name)
	case has < least:
		return nil, failure.NewProblem(api.NoRole, "%s has the role %s on %s, and this takes the role %s", who.Name, has, name, least)
	}
	return t, nil
}

// topicsFor returns the topics on which the sender of the request has a role, by name.
func topicsFor(d *Desk, who *access.Identity, least access.Role) (all []*watch.Topic) {
	for name, t := range d.cfg.Cluster.All() {
		if who.On(name) >= least {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *watch.Topic) int { return strings.Compare(a.DeadLetterTopic.Topic, b.DeadLetterTopic.Topic) })
	return all
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

// summaryOf returns the topic as the API shows it.
func summaryOf(d *Desk, t *watch.Topic) api.Topic {
	sum, progress := t.Index.Summary(), t.Index.Progress()
	is := api.Topic{
		Topic: t.DeadLetterTopic.Topic, Source: t.Source, Criticality: t.Settings.Criticality, ManualOnly: t.Settings.ManualOnly, Unread: progress.Unread,
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
	for i := range is.Guards {
		is.Guards[i].Class = d.cfg.Redact.Text(is.Guards[i].Class)
	}
	return is
}

// timeOr returns nil for the zero time.
func timeOr(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
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
