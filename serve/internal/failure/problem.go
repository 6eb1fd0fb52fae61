package failure

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/pulse"
)

// Problem is what a request gets in place of an answer.
type Problem struct {
	Kind   api.Kind
	Detail string
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the status of HTTP.
func (p *Problem) GetStatus() int {
	if status, known := api.Statuses()[p.Kind]; known {
		return status
	}
	return http.StatusConflict // a refusal of a newer version
}

// NewProblem returns a [Problem].
func NewProblem(kind api.Kind, format string, args ...any) error {
	return &Problem{kind, fmt.Sprintf(format, args...)}
}

// ProblemOf turns an error of the packages dlq and redrive into a [Problem]. Nil stays nil, and a
// problem stays as it is.
func ProblemOf(err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	kind, text := KindOf(err), Text(err)
	if kind == api.Timeout && !errors.Is(err, pulse.ErrSilent) && !errors.Is(err, ErrRetentionGoesOn) {
		text = "the brokers did not answer in the time that a request may take: " + text
	}
	return NewProblem(kind, "%s", text)
}

// IsProblem reports whether an error is a problem of a kind.
func IsProblem(err error, kind api.Kind) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Kind == kind
}
