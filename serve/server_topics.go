package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// listTime is how long a request for a topic waits for a server that has just started, and has not
// listed the topics yet, which takes some round trips to the brokers.
const listTime = 5 * time.Second

// topicFor returns a topic on which the sender of the request has a role. To a page that was left
// open over a restart a server that knows no topic yet must not say that there is none.
func (s *Server) topicFor(ctx context.Context, name string, least access.Role) (*topic, error) {
	id := access.From(ctx)
	has := id.On(name)
	t := s.topic(name)
	if t == nil && has != access.None {
		if !s.hasListed(ctx) {
			return nil, problem(api.NotRunning, notListed)
		}
		t = s.topic(name)
	}
	switch {
	case has == access.None || t == nil:
		return nil, problem(api.NoTopic, "there is no dead-letter topic %q that %s may see", name, id.Name)
	case has < least:
		return nil, problem(api.NoRole, "%s has the role %s on %s, and this takes the role %s", id.Name, has, name, least)
	}
	return t, nil
}

// hasListed reports whether the topics were listed. It waits if the server has just started.
func (s *Server) hasListed(ctx context.Context) bool {
	select {
	case <-s.listed:
		return true
	case <-ctx.Done():
	case <-time.After(listTime):
	}
	return false
}

// topicsFor returns the topics on which the sender of the request has a role, by name.
func (s *Server) topicsFor(ctx context.Context, least access.Role) (all []*topic) {
	id := access.From(ctx)
	for name, t := range s.all() {
		if id.On(name) >= least {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *topic) int { return strings.Compare(a.DeadLetterTopic.Topic, b.DeadLetterTopic.Topic) })
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
func (s *Server) summary(t *topic) api.Topic {
	sum, progress := t.book.Summary(), t.book.Progress()
	is := api.Topic{
		Topic: t.DeadLetterTopic.Topic, Source: t.Source, Criticality: string(t.config.criticality()), ManualOnly: t.config.manualOnly(), Unread: progress.Unread,
		Open: sum.Open, Pending: sum.Pending, Resolved: sum.Resolved, Duplicates: sum.Duplicates, Recent: total(t.recent(time.Now(), t.book.Flow().Written)),
		Known: timeOr(t.asOf(&progress)), Oldest: timeOr(sum.Oldest), Newest: timeOr(sum.Newest), Run: t.unfinished(),
	}
	is.Problem = s.troubleOf(t, progress.Problem)
	for _, kind := range alertKinds {
		// what cannot be read begins anew, and the log has it
		of, _ := incident.Parse(t.book.Noted(alertNote(s.cfg.Group, kind.name)))
		for _, text := range of.Unnotified(time.Now()) {
			is.Unnotified = append(is.Unnotified, outside(s.redact, text))
		}
	}
	is.TopClass, is.Guards = topClass(sum.Groups), append([]api.Guard{}, s.guards.Of(t.Source)...)
	for i := range is.Guards {
		is.Guards[i].Class = s.redact.Text(is.Guards[i].Class)
	}
	return is
}

// troubleOf says why not all is known of a topic, or done about it; empty if there is no reason.
// missed is why its book missed something.
func (s *Server) troubleOf(t *topic, missed error) string {
	s.mu.Lock()
	round, apart := s.why, s.apart
	s.mu.Unlock()
	t.mu.Lock()
	failed, broken, unknown, forgets := t.failed, t.broken, t.unknown, t.forgets
	t.mu.Unlock()
	missed = cmp.Or(failed, missed) // names what is denied
	var silent error
	if since := t.silentSince(s.pulse); !since.IsZero() {
		silent = fmt.Errorf("nothing came of the brokers since %s: the numbers are as of then", since.UTC().Format(time.DateTime+" UTC"))
	}
	var all []string
	for _, err := range []error{silent, missed, broken, unknown, forgets, t.hasLedger(), apart} {
		if err != nil {
			all = append(all, failure.Text(err))
		}
	}
	if len(all) == 0 && round != nil {
		return "the brokers could not be asked for what came since; the server's log has the reason"
	}
	return outside(s.redact, strings.Join(all, "; ")) // errors may quote letters
}

// timeOr returns nil for the zero time.
func timeOr(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}
