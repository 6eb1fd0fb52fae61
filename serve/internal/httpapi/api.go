package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

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

// Add adds the API to a mux, and returns its description.
func (h *API) Add(mux *http.ServeMux) huma.API {
	config := huma.DefaultConfig("siding", "1")
	// The library's own handlers of the description race.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // bodies have no $schema
	config.RejectUnknownQueryParameters = true
	config.Transformers = append(config.Transformers, h.told(config.Components.Schemas))
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer", Description: "A token of the server's file, or of its OpenID provider."}}
	// None where the server asks for none, or a proxy vouches.
	config.Security = []map[string][]string{{"bearer": {}}, {}}
	a := humago.New(mux, config)
	a.UseMiddleware(h.admit)
	h.addReading(a)
	h.addChanging(a)
	loosenAnswers(a.OpenAPI())
	description := sync.OnceValues(a.OpenAPI().YAML)
	mux.Handle("GET /api/v1/openapi.yaml", h.cfg.Gate.Limited(func(w http.ResponseWriter, _ *http.Request, _ *access.Identity, _ error) {
		text, err := description()
		if err != nil {
			admit.WriteProblem(w, failure.NewProblem(api.Internal, "%v", err))
			return
		}
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(text)
	}))
	mux.Handle("/api/", h.cfg.Gate.Limited(func(w http.ResponseWriter, r *http.Request, _ *access.Identity, _ error) {
		admit.WriteProblem(w, failure.NewProblem(api.NoRoute, "there is no %s %s: /api/v1/openapi.yaml has all routes", r.Method, r.URL.Path))
	}))
	return a
}

// loosenAnswers lets answers have fields that the description does not name, since later versions
// add some. A request must not have any: one with a typo would do something else than it says.
func loosenAnswers(o *huma.OpenAPI) {
	schemas := o.Components.Schemas.Map()
	sent := map[string]bool{}
	var walk func(*huma.Schema)
	walk = func(s *huma.Schema) {
		if s == nil {
			return
		}
		if name := path.Base(s.Ref); s.Ref != "" && !sent[name] {
			sent[name] = true
			walk(schemas[name])
		}
		walk(s.Items)
		for _, p := range s.Properties {
			walk(p)
		}
	}
	for _, item := range o.Paths {
		if item.Post != nil && item.Post.RequestBody != nil {
			for _, m := range item.Post.RequestBody.Content {
				walk(m.Schema)
			}
		}
	}
	for name, s := range schemas {
		if s.AdditionalProperties == false && !sent[name] {
			s.AdditionalProperties = nil
		}
	}
}

func (h *API) addReading(a huma.API) {
	const list = http.MethodGet
	add(a, op(list, "/topics", "list-topics", "Topics with counts, those with the most open letters first", access.None), h.cfg.Desk.ListTopics)
	add(a, op(list, "/topics/{topic}", "get-topic", "A topic with its counts", access.Viewer), h.cfg.Desk.GetTopic)
	add(a, op(list, "/topics/{topic}/groups", "list-groups", "Open letters by class and fingerprint", access.Viewer), h.cfg.Desk.ListGroups)
	add(a, op(list, "/topics/{topic}/letters", "list-letters", "Letters, the newest first, page by page", access.Viewer), h.cfg.Desk.ListLetters)
	add(a, op(list, "/topics/{topic}/letters/{partition}/{offset}", "get-letter", "A letter with its history", access.Viewer), h.cfg.Desk.GetLetter)
	addStream(a, op(list, "/topics/{topic}/export", "export-letters", "Letters as JSON lines, byte for byte", access.Reader, streams),
		"application/x-ndjson", "A line for each letter, as redrive export writes it.", h.streamExport)
	add(a, op(list, "/runs", "list-all-runs", "Runs of all topics, the newest first", access.None), h.cfg.Desk.ListAllRuns)
	add(a, op(list, "/topics/{topic}/runs", "list-runs", "Runs of a topic, the newest first", access.Viewer), h.cfg.Desk.ListRuns)
	add(a, op(list, "/topics/{topic}/runs/{run}", "get-run", "A run", access.Viewer), h.cfg.Desk.GetRun)
	addStream(a, op(list, "/topics/{topic}/runs/{run}/events", "follow-run", "States of a run as server-sent events, until it ends", access.Viewer, streams),
		"text/event-stream", "Events named run, whose data is a Run. With a Last-Event-ID there are only later ones; 204 if there are none.", h.streamRun)
	add(a, op(list, "/topics/{topic}/retention", "try-retention", "What the retention of a topic would delete now", access.Viewer, takesLong), h.cfg.Retainer.Try)
	add(a, op(list, "/rules", "list-rules", "Rules with their states", access.None), h.cfg.Desk.ListRules)
	add(a, op(list, "/rules/{rule}/history", "list-rule-history", "What a rule did, the newest first", access.None), h.cfg.Desk.RuleHistory)
	add(a, op(list, "/rules/{rule}/topics/{topic}/dry-run", "try-rule", "What a rule would do now", access.Viewer), h.cfg.Desk.TryRule)
}

func (h *API) addChanging(a huma.API) {
	const do = http.MethodPost
	add(a, op(do, "/topics/{topic}/plan", "plan-run", "What a run would do", access.Operator, takesLong, mayHaveValue), h.cfg.Desk.PlanRun)
	add(a, op(do, "/topics/{topic}/runs", "start-run", "Begin a run of the letters that a filter selects", access.Operator, takesLong, mayHaveValue, accepted), h.cfg.Desk.StartRun)
	add(a, op(do, "/topics/{topic}/letters/{partition}/{offset}/redrive", "redrive-letter", "Begin a run of one letter, with changes", access.Operator, takesLong, mayHaveValue, accepted), h.cfg.Desk.RedriveLetter)
	add(a, op(do, "/topics/{topic}/runs/{run}/abort", "abort-run", "End a run for good, wherever its process is", access.Operator, takesLong), h.cfg.Desk.AbortRun)
	add(a, op(do, "/topics/{topic}/runs/{run}/resume", "resume-run", "Continue a run that no process owns", access.Operator, takesLong, accepted), h.cfg.Desk.ResumeRun)
	add(a, op(do, "/topics/{topic}/letters/{partition}/{offset}/discard", "discard-letter", "Discard a letter", access.Operator, takesLong), h.cfg.Desk.DiscardLetter)
	add(a, op(do, "/topics/{topic}/letters/{partition}/{offset}/reopen", "reopen-letter", "Withdraw that a letter was discarded, or redriven to where no consumer can have it", access.Operator, takesLong), h.cfg.Desk.ReopenLetter)
	add(a, op(do, "/topics/{topic}/discard", "discard-letters", "Discard the letters that a filter selects", access.Operator, takesLong), h.cfg.Desk.DiscardLetters)
	add(a, op(do, "/topics/{topic}/retention", "apply-retention", "Delete now what the retention deletes by the clock", access.Admin, takesLong), h.cfg.Retainer.Prune)
	add(a, op(do, "/rules/{rule}/topics/{topic}/pause", "pause-rule", "Keep a rule from beginning runs on a topic", access.Admin), h.cfg.Desk.PauseRule)
	add(a, op(do, "/rules/{rule}/topics/{topic}/resume", "resume-rule", "Let a rule begin runs again", access.Admin), h.cfg.Desk.ResumeRule)
}

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
	with, end, err := h.cfg.Gate.Enter(w, r, id, length)
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

// told gives problems that the library made their types and texts, and hides in all of them what
// the server hides: the text of an error may quote a letter.
func (h *API) told(schemas huma.Registry) huma.Transformer {
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
		with.Detail = failure.Outside(h.cfg.Redact, with.Detail)
		return &with, nil
	}
}
