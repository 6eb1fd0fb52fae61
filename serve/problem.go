package serve

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/pulse"
)

// problem returns an error of the API.
func problem(kind api.Kind, format string, args ...any) error {
	status, known := api.Statuses()[kind]
	if !known { // a refusal of a newer version
		status = http.StatusConflict
	}
	return &huma.ErrorModel{Type: kind.Type(), Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
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
	kind, text := failure.KindOf(err), failure.Text(err)
	if kind == api.Timeout && !errors.Is(err, pulse.ErrSilent) && !errors.Is(err, failure.ErrRetentionGoesOn) {
		text = "the brokers did not answer in the time that a request may take: " + text
	}
	return problem(kind, "%s", text)
}

// isProblem reports whether an error is a problem of a kind.
func isProblem(err error, kind api.Kind) bool {
	p, ok := errors.AsType[*huma.ErrorModel](err)
	return ok && p.Type == kind.Type()
}
