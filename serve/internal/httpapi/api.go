package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/admit"
	"github.com/sidingkafka/siding/serve/internal/apply"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// Config is what an [API] depends on.
type Config struct {
	Gate     *admit.Gate
	Desk     *operate.Desk
	Retainer *apply.Retainer
	Redact   *redact.Rules // nil if nothing is hidden
	Log      *slog.Logger
}

// API answers requests over HTTP.
type API struct{ cfg Config }

// New returns an API.
func New(cfg Config) *API { return &API{cfg} }

// lengthKey is where the metadata of an operation have how long a request may take.
const lengthKey = "length"

// op returns an operation. role is the least that it takes, for the documentation: the operation
// itself checks it.
func op(method, path, id, summary string, role access.Role, options ...func(*huma.Operation)) *huma.Operation {
	o := &huma.Operation{
		Method: method, Path: "/api/v1" + path, OperationID: id, Summary: summary, Description: "Takes the role " + role.String() + ".",
		BodyReadTimeout: admit.BodyTime, MaxBodyBytes: admit.MostBody, Metadata: map[string]any{lengthKey: access.Usual},
	}
	if role == access.None {
		o.Description = "Answers everybody with what they may see."
	}
	for _, set := range options {
		set(o)
	}
	return o
}

func streams(o *huma.Operation)      { o.Metadata[lengthKey] = access.Stream }
func takesLong(o *huma.Operation)    { o.Metadata[lengthKey] = access.Long }
func mayHaveValue(o *huma.Operation) { o.MaxBodyBytes = admit.MostValue }
func accepted(o *huma.Operation)     { o.DefaultStatus = http.StatusAccepted }

// output is what huma takes for a response with a body.
type output[T any] struct{ Body T }

// add adds an operation whose answer is JSON.
func add[In, Out any](a huma.API, o *huma.Operation, f func(context.Context, *access.Identity, *In) (Out, error)) {
	huma.Register(a, *o, func(ctx context.Context, in *In) (*output[Out], error) {
		out, err := f(ctx, access.From(ctx), in)
		if err != nil {
			return nil, admit.ModelOf(err)
		}
		return &output[Out]{out}, nil
	})
}

// on returns a function of package operate over a desk.
func on[In, Out any](d *operate.Desk, f func(context.Context, *operate.Desk, *access.Identity, *In) (Out, error)) func(context.Context, *access.Identity, *In) (Out, error) {
	return func(ctx context.Context, who *access.Identity, in *In) (Out, error) { return f(ctx, d, who, in) }
}

// addStream adds an operation whose answer is a stream.
func addStream[In any](a huma.API, o *huma.Operation, contentType, description string, f func(context.Context, *access.Identity, *In) (*huma.StreamResponse, error)) {
	o.Responses = map[string]*huma.Response{"200": {
		Description: description,
		Content:     map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	huma.Register(a, *o, func(ctx context.Context, in *In) (*huma.StreamResponse, error) {
		out, err := f(ctx, access.From(ctx), in)
		return out, admit.ModelOf(err)
	})
}

// mayBeEmpty are the parameters of an address for which an empty value makes sense.
var mayBeEmpty = []string{"key", "cursor", "limit"}

// admit finds out who sends a request, and keeps to the limits.
func (h *API) admit(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	w.Header().Set("Cache-Control", "no-store") // answers have parts of records
	w.Header().Set("X-Content-Type-Options", "nosniff")
	id, unknown := h.cfg.Gate.Who(r)
	if unknown != nil {
		id = nil
	}
	length, _ := ctx.Operation().Metadata[lengthKey].(access.Length)
	if length == access.Usual && access.ReadsLetters(r.URL.Query()) {
		length = access.Long
	}
	with, end, err := h.cfg.Gate.Admit(w, r, id, length)
	if err != nil {
		admit.WriteProblem(w, err)
		return
	}
	defer end()
	switch {
	case errors.Is(unknown, access.ErrNobody):
		w.Header().Set("WWW-Authenticate", "Bearer")
		admit.WriteProblem(w, failure.NewProblem(api.Unauthenticated, "%v", unknown))
		return
	case unknown != nil:
		admit.WriteProblem(w, failure.NewProblem(api.ProviderDown, "%v", unknown))
		return
	}
	for name, values := range r.URL.Query() {
		if !slices.Contains(mayBeEmpty, name) && slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" }) {
			admit.WriteProblem(w, failure.NewProblem(api.BadFilter, "%s is empty: %s", name, api.EmptyFilter))
			return
		}
	}
	next(huma.WithContext(ctx, access.Asking(access.With(with, id), r, id, h.cfg.Gate.Who)))
}

// finishProblem gives problems that the library made their types and texts, and hides in all of
// them what the server hides: the text of an error may quote a letter.
func (h *API) finishProblem(schemas huma.Registry) huma.Transformer {
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
				explainFaults(&with, ctx.Operation(), schemas)
			}
			with.Type = kind.Type()
		}
		with.Detail = failure.Outside(h.cfg.Redact, with.Detail)
		return &with, nil
	}
}
