package serve

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/book"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// topicFor returns a topic on which the sender of the request has a role. To a page that was left
// open over a restart a server that knows no topic yet must not say that there is none.
func (s *Server) topicFor(ctx context.Context, name string, least access.Role) (*watch.Topic, error) {
	id := access.From(ctx)
	has := id.On(name)
	t := s.cluster.Topic(name)
	if t == nil && has != access.None {
		if !s.cluster.AwaitListed(ctx) {
			return nil, problem(api.NotRunning, notListed)
		}
		t = s.cluster.Topic(name)
	}
	switch {
	case has == access.None || t == nil:
		return nil, problem(api.NoTopic, "there is no dead-letter topic %q that %s may see", name, id.Name)
	case has < least:
		return nil, problem(api.NoRole, "%s has the role %s on %s, and this takes the role %s", id.Name, has, name, least)
	}
	return t, nil
}

// topicsFor returns the topics on which the sender of the request has a role, by name.
func (s *Server) topicsFor(ctx context.Context, least access.Role) (all []*watch.Topic) {
	id := access.From(ctx)
	for name, t := range s.cluster.All() {
		if id.On(name) >= least {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *watch.Topic) int { return strings.Compare(a.DeadLetterTopic.Topic, b.DeadLetterTopic.Topic) })
	return all
}

// listTopics returns the topics, those with the most open letters first.
func (s *Server) listTopics(ctx context.Context, _ *request.Nothing) ([]api.Topic, error) {
	all := []api.Topic{}
	for _, t := range s.topicsFor(ctx, access.Viewer) {
		all = append(all, s.summary(t))
	}
	slices.SortStableFunc(all, func(a, b api.Topic) int { return int(min(max(b.Open-a.Open, -1), 1)) })
	return all, nil
}

// getTopic returns a topic with its counts.
func (s *Server) getTopic(ctx context.Context, in *request.Topic) (api.Topic, error) {
	t, err := s.topicFor(ctx, in.Topic, access.Viewer)
	if err != nil {
		return api.Topic{}, err
	}
	return s.summary(t), nil
}

// summary returns the topic as the API shows it.
func (s *Server) summary(t *watch.Topic) api.Topic {
	sum, progress := t.Book.Summary(), t.Book.Progress()
	is := api.Topic{
		Topic: t.DeadLetterTopic.Topic, Source: t.Source, Criticality: t.Settings.Criticality, ManualOnly: t.Settings.ManualOnly, Unread: progress.Unread,
		Open: sum.Open, Pending: sum.Pending, Resolved: sum.Resolved, Duplicates: sum.Duplicates, Recent: watch.Total(t.Recent(time.Now(), t.Book.Flow().Written)),
		Known: timeOr(t.AsOf(&progress)), Oldest: timeOr(sum.Oldest), Newest: timeOr(sum.Newest), Run: t.Unfinished(),
	}
	is.Problem = s.cluster.Trouble(t, progress.Problem)
	for _, kind := range watch.AlertKinds {
		// what cannot be read begins anew, and the log has it
		of, _ := incident.Parse(t.Book.Noted(watch.AlertNote(s.cfg.Group, kind.Name)))
		for _, text := range of.Unnotified(time.Now()) {
			is.Unnotified = append(is.Unnotified, failure.Outside(s.redact, text))
		}
	}
	is.TopClass, is.Guards = topClass(sum.Groups), append([]api.Guard{}, s.cluster.Guards.Of(t.Source)...)
	for i := range is.Guards {
		is.Guards[i].Class = s.redact.Text(is.Guards[i].Class)
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
func topClass(groups []book.Group) (top string) {
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
