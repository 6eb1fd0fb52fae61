package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
)

// problem returns an error of the API.
func problem(kind api.Kind, format string, args ...any) error {
	status, known := api.Statuses()[kind]
	if !known { // a refusal of a newer version
		status = http.StatusConflict
	}
	return &huma.ErrorModel{Type: kind.Type(), Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// problemOn is [problemOf] of an error about a topic. It names the permissions that are missing.
func (s *Server) problemOn(ctx context.Context, t *topic, err error) error {
	return problemOf(s.denied(ctx, t, err))
}

// problemOf turns an error of the packages dlq and redrive into one of the API. Nil stays nil, and
// a problem stays as it is.
func problemOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*huma.ErrorModel](err); ok {
		return err
	}
	if r, ok := errors.AsType[*redrive.RefusedError](err); ok {
		return problem(api.Kind(strings.ReplaceAll(string(r.Reason), " ", "-")), "%v", err)
	}
	kind := api.Kafka
	switch {
	case isDenial(err):
		kind = api.KafkaDenied
	case errors.Is(err, context.DeadlineExceeded):
		return problem(api.Timeout, "the brokers did not answer in the time that a request may take: %v", err)
	case errors.Is(err, redrive.ErrNoRun):
		kind = api.NoRun
	case errors.Is(err, redrive.ErrTaken):
		kind = api.RunHeld
	case errors.Is(err, redrive.ErrTopicRecreated):
		kind = api.TopicWasRecreated
	case errors.Is(err, dlq.ErrNoLetter):
		kind = api.NoLetter
	case errors.Is(err, dlq.ErrNoTopic):
		kind = api.NoTopic
	case errors.Is(err, dlq.ErrUnfinishedRun):
		kind = api.UnfinishedRun
	case errors.Is(err, dlq.ErrChanged):
		kind = api.Changed
	case errors.Is(err, ErrNoLedger):
		kind = api.NoLedger
	case errors.Is(err, dlq.ErrNewerVersion):
		kind = api.NewerVersion
	}
	// joined errors have a line each
	return problem(kind, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// isProblem reports whether an error is a problem of a kind.
func isProblem(err error, kind api.Kind) bool {
	p, ok := errors.AsType[*huma.ErrorModel](err)
	return ok && p.Type == kind.Type()
}

// told gives problems that the library made their types and texts, and hides in all of them what
// the server hides: the text of an error may quote a letter.
func (s *Server) told(schemas huma.Registry) huma.Transformer {
	return func(ctx huma.Context, _ string, v any) (any, error) {
		p, ok := v.(*huma.ErrorModel)
		if !ok {
			return v, nil
		}
		with := *p
		if p.Type == "" {
			kind := api.Internal
			switch {
			case p.Status == http.StatusRequestEntityTooLarge:
				kind = api.TooLarge
			case p.Status == http.StatusRequestTimeout:
				kind = api.TooSlow
			case p.Status < http.StatusInternalServerError:
				kind = api.InvalidRequest
				tellFaults(&with, ctx.Operation(), schemas)
			}
			with.Type = kind.Type()
		}
		if s.redact != nil {
			with.Detail = s.redact.Text(with.Detail)
		}
		return &with, nil
	}
}
