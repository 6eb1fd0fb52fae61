package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/book"
)

// problem returns an error of the API. kind is the stable end of its type.
func problem(status int, kind, format string, args ...any) error {
	return &huma.ErrorModel{Type: "https://github.com/sidingkafka/siding/blob/main/docs/serve.md#" + kind, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

type identityKey struct{}

// identityOf returns who sent the request.
func identityOf(ctx context.Context) *access.Identity {
	id, _ := ctx.Value(identityKey{}).(*access.Identity)
	return id
}

// newAPI adds the API to a mux.
func (s *Server) newAPI(mux *http.ServeMux) huma.API {
	config := huma.DefaultConfig("siding", "1")
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "/api/v1/openapi", "", ""
	config.CreateHooks = nil // bodies have no $schema
	a := humago.New(mux, config)
	a.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		r, _ := humago.Unwrap(ctx)
		id, err := s.who.Who(r)
		switch {
		case errors.Is(err, access.ErrNobody):
			ctx.SetHeader("WWW-Authenticate", "Bearer")
			writeProblem(a, ctx, problem(http.StatusUnauthorized, "unauthenticated", "%v", err))
		case err != nil:
			writeProblem(a, ctx, problem(http.StatusServiceUnavailable, "provider-down", "%v", err))
		default:
			next(huma.WithValue(ctx, identityKey{}, id))
		}
	})
	huma.Get(a, "/api/v1/topics", s.listTopics, huma.OperationTags("topics"))
	huma.Get(a, "/api/v1/topics/{topic}", s.getTopic, huma.OperationTags("topics"))
	huma.Get(a, "/api/v1/topics/{topic}/groups", s.listGroups, huma.OperationTags("letters"))
	huma.Get(a, "/api/v1/topics/{topic}/letters", s.listLetters, huma.OperationTags("letters"))
	huma.Get(a, "/api/v1/topics/{topic}/letters/{partition}/{offset}", s.getLetter, huma.OperationTags("letters"))
	return a
}

func writeProblem(a huma.API, ctx huma.Context, err error) {
	var p *huma.ErrorModel
	if errors.As(err, &p) {
		_ = huma.WriteErr(a, ctx, p.Status, p.Detail, err)
	}
}

// topicFor returns a topic on which the sender of the request has a role.
func (s *Server) topicFor(ctx context.Context, name string, least access.Role) (*topic, error) {
	id := identityOf(ctx)
	has := id.On(name)
	t := s.all()[name]
	switch {
	case has == access.None || t == nil:
		return nil, problem(http.StatusNotFound, "no-topic", "there is no dead-letter topic %q that %s may see", name, id.Name)
	case has < least:
		return nil, problem(http.StatusForbidden, "no-role", "%s is a %s on %s, and this takes the role %s", id.Name, has, name, least)
	}
	return t, nil
}

type topicsOutput struct{ Body []api.Topic }

func (s *Server) listTopics(ctx context.Context, _ *struct{}) (*topicsOutput, error) {
	id := identityOf(ctx)
	out := &topicsOutput{Body: []api.Topic{}}
	for name, t := range s.all() {
		if id.On(name) >= access.Viewer {
			out.Body = append(out.Body, t.summary())
		}
	}
	slices.SortFunc(out.Body, func(a, b api.Topic) int {
		if a.Open != b.Open {
			return int(min(max(b.Open-a.Open, -1), 1))
		}
		return strings.Compare(a.Topic, b.Topic)
	})
	return out, nil
}

type TopicInput struct {
	Topic string `path:"topic" maxLength:"249" doc:"Name of the dead-letter topic."`
}

type topicOutput struct{ Body api.Topic }

func (s *Server) getTopic(ctx context.Context, in *TopicInput) (*topicOutput, error) {
	t, err := s.topicFor(ctx, in.Topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	return &topicOutput{t.summary()}, nil
}

// summary returns the topic as the API shows it.
func (t *topic) summary() api.Topic {
	sum, progress := t.book.Summary(), t.book.Progress()
	is := api.Topic{
		Topic: t.DeadLetterTopic.Topic, Source: t.Source, Criticality: string(t.config.criticality()), Unread: progress.Unread,
		Open: sum.Open, Pending: sum.Pending, Resolved: sum.Resolved, Duplicates: sum.Duplicates, Recent: t.book.Entered(time.Now().Add(-newWithin)),
		Known: timeOr(progress.Complete), Oldest: timeOr(sum.Oldest), Newest: timeOr(sum.Newest),
	}
	if progress.Problem != nil {
		is.Problem = progress.Problem.Error()
	}
	if len(sum.Groups) > 0 {
		is.TopClass = sum.Groups[0].Class
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

// FilterInput are the filters of letters that the book can decide.
type FilterInput struct {
	TopicInput
	Class       []string  `query:"class,explode" doc:"Class of the error; one that ends in * stands for all that begin with the rest."`
	Fingerprint []string  `query:"fingerprint,explode"`
	Group       []string  `query:"group,explode" doc:"Consumer group."`
	Reason      []string  `query:"reason,explode" doc:"Reason of the letter."`
	State       []string  `query:"state,explode" doc:"State of the letter; with it, resolved letters are listed, too."`
	Since       time.Time `query:"since" doc:"Time of the last failure, inclusive."`
	Until       time.Time `query:"until" doc:"Time of the last failure, exclusive."`
}

func (in *FilterInput) filter() *dlq.Filter {
	f := &dlq.Filter{Classes: in.Class, Fingerprints: in.Fingerprint, Groups: in.Group, Since: in.Since, Until: in.Until}
	for _, r := range in.Reason {
		f.Reasons = append(f.Reasons, headers.Reason(r))
	}
	for _, s := range in.State {
		f.States = append(f.States, dlq.State(s))
	}
	return f
}

type groupsOutput struct{ Body []api.Group }

func (s *Server) listGroups(ctx context.Context, in *FilterInput) (*groupsOutput, error) {
	t, err := s.topicFor(ctx, in.Topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	first := t.book.Summary().FirstWritten
	out := &groupsOutput{Body: []api.Group{}}
	for _, g := range t.book.Select(in.filter()).Groups {
		out.Body = append(out.Body, api.Group{
			Class: g.Class, Fingerprint: g.Fingerprint, Open: g.Open, First: g.First.UTC(), Last: g.Last.UTC(), New: time.Since(first[g.Class]) < newFor,
			Groups: g.Groups, Versions: g.Versions, Reasons: g.Reasons, Sample: g.Sample, Partition: g.Partition, Offset: g.Offset,
		})
	}
	return out, nil
}

type lettersInput struct {
	FilterInput
	Cursor string `query:"cursor" maxLength:"10000" doc:"What next was on the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"Letters on a page."`
}

type lettersOutput struct{ Body api.Letters }

func (s *Server) listLetters(ctx context.Context, in *lettersInput) (*lettersOutput, error) {
	t, err := s.topicFor(ctx, in.Topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	var before dlq.Cursor
	if in.Cursor != "" {
		if before, err = dlq.ParseCursor(in.Cursor); err != nil {
			return nil, problem(http.StatusBadRequest, "bad-cursor", "the cursor cannot be read: %v: begin without one", err)
		}
		if before.Topic != in.Topic || len(before.End) == 0 {
			return nil, problem(http.StatusBadRequest, "bad-cursor", "the cursor is of %q: begin without one", before.Topic)
		}
	}
	rows, next, more := t.book.Page(in.filter(), len(in.State) > 0, before, in.Limit)
	out := &lettersOutput{Body: api.Letters{Letters: []api.Letter{}}}
	for i := range rows {
		out.Body.Letters = append(out.Body.Letters, letterOf(&rows[i]))
	}
	if more {
		out.Body.Next = next.String()
	}
	return out, nil
}

func letterOf(r *book.Row) api.Letter {
	return api.Letter{
		Partition: r.Partition, Offset: r.Offset, State: string(r.State), FailedAt: r.FailedAt.UTC(), EnteredAt: r.EnteredAt.UTC(),
		Class: r.Kind.Class, Fingerprint: r.Kind.Fingerprint, Reason: string(r.Kind.Reason), Group: r.Kind.Group, Version: r.Kind.Version,
	}
}
