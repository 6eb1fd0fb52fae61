package console

import (
	"maps"
	"net/http"
	"slices"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// Console answers with pages. It is safe for concurrent use. See DESIGN.md, "The console".
type Console struct {
	site    *site
	handler http.Handler
}

// New returns a console.
func New(cfg Config) *Console {
	c := &Console{site: newSite(cfg)}
	mux := http.NewServeMux()
	for pattern, h := range routes(c.site) {
		mux.Handle(pattern, h)
	}
	c.handler = secured(mux)
	return c
}

// routes returns what answers, by pattern.
func routes(s *site) map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /static/{file...}": s.forAnybody(serveAsset),
		"/api/":                 http.NotFoundHandler(),
		"/":                     s.page(func(*visit) (*page, error) { return nil, errNoPage }),
	}
	for pattern, f := range map[string]http.HandlerFunc{
		"GET /sign-in":               s.askSignIn,
		"POST /sign-in":              s.signIn,
		"GET /sign-in/provider":      s.byProvider(s.beginSignIn),
		"GET " + access.CallbackPath: s.byProvider(s.finishSignIn),
		"POST /sign-out":             s.signOut,
		"POST /theme":                setTheme,
	} {
		all[pattern] = s.forAnybody(f)
	}
	d := s.cfg.Desk
	for pattern, p := range map[string]func(*operate.Desk, *visit) (*page, error){
		"GET /{$}":            overviewPage,
		"GET /topics/{topic}": incidentPage,
		"GET /topics/{topic}/letters/{partition}/{offset}": letterPage,
		"GET /topics/{topic}/runs/{run}":                   func(d *operate.Desk, r *visit) (*page, error) { return runPage(d, &s.meter, r) },
		"GET /runs":                                        runsPage,
		"GET /rules":                                       rulesPage,
		"GET /audit":                                       auditPage,
	} {
		all[pattern] = s.page(func(r *visit) (*page, error) { return p(d, r) })
	}
	for path, f := range map[string]func(*site, *visit) (*answer, error){
		"/topics/{topic}/redrive":                              redriveForm,
		"/topics/{topic}/discard":                              discardForm,
		"/topics/{topic}/letters/{partition}/{offset}/discard": discardForm,
		"/topics/{topic}/letters/{partition}/{offset}/reopen":  reopenForm,
		"/rules/{rule}/topics/{topic}":                         ruleForm,
		"/topics/{topic}/letters/{partition}/{offset}/redrive": redriveForm,
	} {
		h := s.answers(func(r *visit) (*answer, error) { return f(s, r) })
		all["GET "+path], all["POST "+path] = h, h
	}
	all["GET /topics/{topic}/whom"] = s.answers(func(r *visit) (*answer, error) { return whomPage(s, r) })
	for act, f := range map[string]func(*operate.Desk, *visit) (*answer, error){"abort": abortRun, "resume": resumeRun} {
		all["POST /topics/{topic}/runs/{run}/"+act] = s.answers(func(r *visit) (*answer, error) { return f(d, r) })
	}
	return all
}

// Routes returns the patterns of all routes, so that a test can ask of each who gets an answer.
func (c *Console) Routes() []string { return slices.Sorted(maps.Keys(routes(c.site))) }

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// End ends the streams of all pages, and returns when nothing of the console runs any more. Pages
// are still answered; they poll.
func (c *Console) End() { c.site.streams.End() }

// policy is what browsers may do with a page: load the server's own files, and send forms to it.
// Styles and scripts within the page do not count.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secured sets the headers that each answer has.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store") // of records
		h.ServeHTTP(w, r)
	})
}
