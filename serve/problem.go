package serve

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sidingkafka/siding/serve/internal/failure"
)

// modelOf returns a problem as the API answers with it; nil for nil.
func modelOf(err error) error {
	p, ok := errors.AsType[*failure.Problem](failure.ProblemOf(err))
	if !ok {
		return nil
	}
	return &huma.ErrorModel{Type: p.Kind.Type(), Title: http.StatusText(p.GetStatus()), Status: p.GetStatus(), Detail: p.Detail}
}
