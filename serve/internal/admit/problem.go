package admit

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sidingkafka/siding/serve/internal/failure"
)

// ModelOf returns a problem as the API answers with it; nil for nil.
func ModelOf(err error) error {
	p, ok := errors.AsType[*failure.Problem](failure.ProblemOf(err))
	if !ok {
		return nil
	}
	return &huma.ErrorModel{Type: p.Kind.Type(), Title: http.StatusText(p.GetStatus()), Status: p.GetStatus(), Detail: p.Detail}
}

// WriteProblem answers with a problem.
func WriteProblem(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*huma.ErrorModel](ModelOf(err))
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
