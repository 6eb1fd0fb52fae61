package httpapi

import (
	"net/http"
	"path"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/admit"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// Add adds the API to a mux, and returns its description.
func (h *API) Add(mux *http.ServeMux) huma.API {
	config := huma.DefaultConfig("siding", "1")
	// The library's own handlers of the description race.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // bodies have no $schema
	config.RejectUnknownQueryParameters = true
	config.Transformers = append(config.Transformers, h.finishProblem(config.Components.Schemas))
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
	add(a, op(list, "/topics", "list-topics", "Topics with counts, those with the most open letters first", access.None), on(h.cfg.Desk, operate.ListTopics))
	add(a, op(list, "/topics/{topic}", "get-topic", "A topic with its counts", access.Viewer), on(h.cfg.Desk, operate.GetTopic))
	add(a, op(list, "/topics/{topic}/consumers", "list-consumers", "Consumer groups of a topic's source, those that need somebody first", access.Viewer), on(h.cfg.Desk, operate.ListConsumers))
	add(a, op(list, "/topics/{topic}/groups", "list-groups", "Open letters by class and fingerprint", access.Viewer), on(h.cfg.Desk, operate.ListGroups))
	add(a, op(list, "/topics/{topic}/classes", "list-classes", "Open letters by class, and each class by fingerprint", access.Viewer), on(h.cfg.Desk, operate.ListClasses))
	add(a, op(list, "/topics/{topic}/values", "count-values", "Open letters by a header or a member of their values", access.Reader, takesLong), on(h.cfg.Desk, operate.CountValues))
	add(a, op(list, "/topics/{topic}/letters", "list-letters", "Letters, the newest first, page by page", access.Viewer), on(h.cfg.Desk, operate.ListLetters))
	add(a, op(list, "/topics/{topic}/letters/{partition}/{offset}", "get-letter", "A letter with its history", access.Viewer), on(h.cfg.Desk, operate.GetLetter))
	addStream(a, op(list, "/topics/{topic}/export", "export-letters", "Letters as JSON lines, byte for byte", access.Reader, streams),
		"application/x-ndjson", "A line for each letter, as redrive export writes it.", h.streamExport)
	add(a, op(list, "/runs", "list-all-runs", "Runs of all topics, the newest first", access.None), on(h.cfg.Desk, operate.ListAllRuns))
	add(a, op(list, "/topics/{topic}/runs", "list-runs", "Runs of a topic, the newest first", access.Viewer), on(h.cfg.Desk, operate.ListRuns))
	add(a, op(list, "/topics/{topic}/runs/{run}", "get-run", "A run", access.Viewer), on(h.cfg.Desk, operate.GetRun))
	addStream(a, op(list, "/topics/{topic}/runs/{run}/events", "follow-run", "States of a run as server-sent events, until it ends", access.Viewer, streams),
		"text/event-stream", "Events named run, whose data is a Run. With a Last-Event-ID there are only later ones; 204 if there are none.", h.streamRun)
	add(a, op(list, "/topics/{topic}/audit", "list-acts", "Who did what on a topic, the latest first", access.Viewer), on(h.cfg.Desk, operate.ListActs))
	add(a, op(list, "/topics/{topic}/retention", "try-retention", "What the retention of a topic would delete now", access.Viewer, takesLong), h.cfg.Retainer.Try)
	add(a, op(list, "/rules", "list-rules", "Rules with their states", access.None), on(h.cfg.Desk, operate.ListRules))
	add(a, op(list, "/rules/{rule}/history", "list-rule-history", "What a rule did, the newest first", access.None), on(h.cfg.Desk, operate.RuleHistory))
	add(a, op(list, "/rules/{rule}/topics/{topic}/dry-run", "try-rule", "What a rule would do now", access.Viewer), on(h.cfg.Desk, operate.TryRule))
}

func (h *API) addChanging(a huma.API) {
	const do = http.MethodPost
	add(a, op(do, "/topics/{topic}/plan", "plan-run", "What a run would do", access.Operator, takesLong, mayHaveValue), on(h.cfg.Desk, operate.PlanRun))
	add(a, op(do, "/topics/{topic}/runs", "start-run", "Begin a run of the letters that a filter selects", access.Operator, takesLong, mayHaveValue, accepted), on(h.cfg.Desk, operate.StartRun))
	add(a, op(do, "/topics/{topic}/letters/{partition}/{offset}/redrive", "redrive-letter", "Begin a run of one letter, with changes", access.Operator, takesLong, mayHaveValue, accepted), on(h.cfg.Desk, operate.RedriveLetter))
	add(a, op(do, "/topics/{topic}/runs/{run}/abort", "abort-run", "End a run for good, wherever its process is", access.Operator, takesLong), on(h.cfg.Desk, operate.AbortRun))
	add(a, op(do, "/topics/{topic}/runs/{run}/resume", "resume-run", "Continue a run that no process owns", access.Operator, takesLong, accepted), on(h.cfg.Desk, operate.ResumeRun))
	add(a, op(do, "/topics/{topic}/letters/{partition}/{offset}/discard", "discard-letter", "Discard a letter", access.Operator, takesLong), on(h.cfg.Desk, operate.DiscardLetter))
	add(a, op(do, "/topics/{topic}/letters/{partition}/{offset}/reopen", "reopen-letter", "Withdraw that a letter was discarded, or redriven to where no consumer can have it", access.Operator, takesLong), on(h.cfg.Desk, operate.ReopenLetter))
	add(a, op(do, "/topics/{topic}/discard", "discard-letters", "Discard the letters that a filter selects", access.Operator, takesLong), on(h.cfg.Desk, operate.DiscardLetters))
	add(a, op(do, "/topics/{topic}/retention", "apply-retention", "Delete now what the retention deletes by the clock", access.Admin, takesLong), h.cfg.Retainer.Prune)
	add(a, op(do, "/rules/{rule}/topics/{topic}/pause", "pause-rule", "Keep a rule from beginning runs on a topic", access.Admin), on(h.cfg.Desk, operate.PauseRule))
	add(a, op(do, "/rules/{rule}/topics/{topic}/resume", "resume-rule", "Let a rule begin runs again", access.Admin), on(h.cfg.Desk, operate.ResumeRule))
}
