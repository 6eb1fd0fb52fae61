package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// Console answers with pages. It is safe for concurrent use. See DESIGN.md, "The console".
type Console struct {
	data    Data
	actions Actions
	browser *access.Browser
	log     *slog.Logger
	views   *views
	streams *streams
	meter   meter
	memory  memory
	handler http.Handler
}

// New returns a console over data, for those whom a browser knows, and for requests of any site.
func New(data Data, actions Actions, browser *access.Browser, log *slog.Logger) *Console {
	all := newViews()
	c := &Console{data: data, actions: actions, browser: browser, log: log, views: all, streams: newStreams(all)}
	mux := http.NewServeMux()
	for pattern, h := range c.routes() {
		mux.Handle(pattern, h)
	}
	c.handler = secured(mux)
	return c
}

// routes returns what answers, by pattern.
func (c *Console) routes() map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /static/{file...}": c.forAnybody(serveAsset),
		"/api/":                 http.NotFoundHandler(),
		"/":                     c.page(func(*request) (*page, error) { return nil, errNoPage }),
	}
	for pattern, f := range map[string]http.HandlerFunc{
		"GET /sign-in":               c.askSignIn,
		"POST /sign-in":              c.signIn,
		"GET /sign-in/provider":      c.byProvider(c.beginSignIn),
		"GET " + access.CallbackPath: c.byProvider(c.finishSignIn),
		"POST /sign-out":             c.signOut,
		"POST /theme":                c.setTheme,
	} {
		all[pattern] = c.forAnybody(f)
	}
	for pattern, p := range map[string]func(*request) (*page, error){
		"GET /{$}":            c.overview,
		"GET /topics/{topic}": c.incident,
		"GET /topics/{topic}/letters/{partition}/{offset}": c.letter,
		"GET /topics/{topic}/runs/{run}":                   c.run,
		"GET /runs":                                        c.runs,
		"GET /rules":                                       c.rules,
		"GET /audit":                                       c.audit,
	} {
		all[pattern] = c.page(p)
	}
	for path, f := range map[string]func(*request) (*answer, error){
		"/topics/{topic}/redrive":                              c.redrive,
		"/topics/{topic}/discard":                              c.discard,
		"/topics/{topic}/letters/{partition}/{offset}/discard": c.discard,
		"/topics/{topic}/letters/{partition}/{offset}/reopen":  c.reopen,
		"/rules/{rule}/topics/{topic}":                         c.rule,
		"/topics/{topic}/letters/{partition}/{offset}/redrive": c.redrive,
	} {
		all["GET "+path], all["POST "+path] = c.answers(f), c.answers(f)
	}
	for act, f := range map[string]func(*request) (*answer, error){"abort": c.abort, "resume": c.resume} {
		all["POST /topics/{topic}/runs/{run}/"+act] = c.answers(f)
	}
	return all
}

// Routes returns the patterns of all routes, so that a test can ask of each who gets an answer.
func (c *Console) Routes() []string { return slices.Sorted(maps.Keys(c.routes())) }

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// End ends the streams of all pages, and returns when nothing of the console runs any more. Pages
// are still answered; they poll.
func (c *Console) End() { c.streams.end() }

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

// request is a request for a page, by somebody who is known.
type request struct {
	*http.Request
	who   *access.Identity
	query url.Values // without the keys of streams
	base  string     // see baseOf
	now   time.Time
}

// page is what a page has besides its live part.
type page struct {
	Title string
	// Section is the page of the navigation that it belongs to.
	Section string
	// Heading is its name, and Above the pages around it.
	Heading string
	Above   []link
	// Role is the role on the topic of the page; empty without a topic.
	Role string
	// Form filters the page; nil if it has no filter.
	Form *form

	// address is the one spelling of the page's address; empty if it has no other.
	address string
	// run is the key of the run that the page is about, which needs no card besides; empty without.
	run  string
	live view
}

// link is a link to a page.
type link struct{ Name, Path string }

// withStatus is an error that has a status of HTTP.
type withStatus interface {
	error
	GetStatus() int
}

// pageError is an error of the console itself.
type pageError struct {
	status int
	text   string
}

func (e *pageError) Error() string  { return e.text }
func (e *pageError) GetStatus() int { return e.status }

// roleOn returns the role that the sender of a request has on a topic.
func (c *Console) roleOn(r *request, topic string) (access.Role, error) {
	if role, ok := c.data.Roles(r.who)[topic]; ok {
		return role, nil
	}
	// A server that has just started may know it soon.
	t, err := c.data.Topic(r.Context(), r.who, topic)
	if err == nil {
		return t.Role, nil
	}
	if known, ok := errors.AsType[withStatus](err); ok && known.GetStatus() != http.StatusNotFound {
		return access.None, err
	}
	return access.None, &pageError{http.StatusNotFound, fmt.Sprintf("There is no dead-letter topic %q that %s may see.", topic, r.who.Name)}
}

var errNoPage = &pageError{http.StatusNotFound, "There is no such page."}

// enter finds out who sends a request, and keeps to the limits. Unless ok, it has answered: whoever
// is not known is asked to sign in.
func (c *Console) enter(w http.ResponseWriter, r *http.Request, length access.Length) (req *request, end func(), ok bool) {
	req = &request{Request: r, query: r.URL.Query(), base: baseOf(r), now: time.Now()}
	who, unknown := c.browser.Who(r)
	if unknown != nil {
		who = nil
	}
	ctx, end, err := c.data.Enter(w, r, who, length)
	switch {
	case err != nil:
		c.fail(w, req, err)
		return nil, nil, false
	case unknown != nil:
		defer end()
		c.refuse(w, r, unknown)
		return nil, nil, false
	}
	req.who, req.Request = who, r.WithContext(access.Asking(ctx, r, who, c.browser.Who))
	return req, end, true
}

// forAnybody answers whoever it is, within the limits. Whoever is not known is here to sign in.
func (c *Console) forAnybody(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := c.browser.Who(r)
		if err != nil {
			who = access.Guest
		}
		ctx, end, err := c.data.Enter(w, r, who, access.Usual)
		if err != nil {
			c.fail(w, &request{Request: r, base: baseOf(r)}, err)
			return
		}
		defer end()
		h(w, r.WithContext(ctx))
	})
}

// page answers with a page, or with a stream of its live part.
func (c *Console) page(of func(*request) (*page, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		follows, reads, length := strings.Contains(r.Header.Get("Accept"), "text/event-stream"), access.ReadsLetters(r.URL.Query()), access.Usual
		switch {
		case follows && reads:
			length = access.Stream
		case follows:
			length = access.Live
		case reads:
			length = access.Long
		}
		req, end, ok := c.enter(w, r, length)
		if !ok {
			return
		}
		defer end()
		r = req.Request
		seen := req.query.Get("seen")
		req.query.Del("seen")
		p, err := of(req)
		if err != nil {
			c.fail(w, req, err)
			return
		}
		if follows {
			cards := c.cards(req, p.run)
			if err := c.streams.serve(w, r, &p.live, &cards, seen); err != nil {
				w.Header().Set("Retry-After", "10")
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
			return
		}
		switch {
		case p.address == "" || r.Header.Get("HX-History-Restore-Request") != "":
		case r.Header.Get("HX-Request") != "":
			w.Header().Set("HX-Push-Url", p.address)
		case hasEmpty(req.query):
			// A form sends the fields that nobody filled in.
			http.Redirect(w, r, p.address, http.StatusSeeOther)
			return
		}
		live, err := c.views.get(r.Context(), &p.live)
		if err != nil {
			c.fail(w, req, err)
			return
		}
		c.write(w, req, http.StatusOK, p, live)
	})
}

func hasEmpty(q url.Values) bool {
	for _, values := range q {
		if slices.Contains(values, "") {
			return true
		}
	}
	return false
}

// fail answers with a page that says what is wrong.
func (c *Console) fail(w http.ResponseWriter, r *request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		return // the browser is gone
	}
	status, text := c.explain(r, err)
	c.say(w, r, status, http.StatusText(status), text)
}

// baseOf returns the path below which the console is mounted, as in /admin; empty at the root. That
// is what a handler around the console has cut off, as [http.StripPrefix] does.
func baseOf(r *http.Request) string {
	whole, _, _ := strings.Cut(r.RequestURI, "?")
	base, ok := strings.CutSuffix(whole, r.URL.EscapedPath())
	if !ok || !strings.HasPrefix(base, "/") || strings.HasPrefix(base, "//") || strings.ContainsAny(base, `\"'<>`) {
		return ""
	}
	return strings.TrimSuffix(base, "/")
}
