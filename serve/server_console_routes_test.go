package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve"
)

// routeCase is how a test asks one route of the console.
type routeCase struct {
	path string
	// least is the least role on the topic that gets an answer: "any" for a user who sees what they
	// may, and "anybody" for those who have no credentials, too.
	least string
	// code is the answer to those with the role; 0 if it depends on the topic.
	code int
}

const (
	routeTopic  = "/topics/orders.dlq"
	routeLetter = routeTopic + "/letters/1/0"
	routeNone   = routeTopic + "/letters/1/77" // there is no such letter
	routeRun    = routeTopic + "/runs/none"
	routeRule   = "/rules/slow%20gateway/topics/orders.dlq"
)

// routeCases are by the patterns of the routes.
var routeCases = map[string]routeCase{
	"/":                     {"/nowhere", "any", http.StatusNotFound},
	"/api/":                 {"/api/v2", "anybody", http.StatusNotFound},
	"GET /static/{file...}": {"/static/console.css", "anybody", http.StatusOK},
	"GET /sign-in":          {"/sign-in", "anybody", http.StatusOK},
	// there is neither a token nor a provider
	"POST /sign-in":         {"/sign-in", "anybody", http.StatusUnauthorized},
	"GET /sign-in/provider": {"/sign-in/provider", "anybody", http.StatusNotFound},
	"GET /sign-in/callback": {"/sign-in/callback", "anybody", http.StatusNotFound},
	"POST /sign-out":        {"/sign-out", "anybody", http.StatusSeeOther},
	"POST /theme":           {"/theme", "anybody", http.StatusSeeOther},

	"GET /{$}":   {"/", "any", http.StatusOK},
	"GET /runs":  {"/runs", "any", http.StatusOK},
	"GET /rules": {"/rules", "any", http.StatusOK},
	"GET /audit": {"/audit", "any", http.StatusOK},

	"GET /topics/{topic}":                              {routeTopic, "viewer", http.StatusOK},
	"GET /topics/{topic}/letters/{partition}/{offset}": {routeLetter, "viewer", http.StatusOK},
	"GET /topics/{topic}/runs/{run}":                   {routeRun, "viewer", http.StatusNotFound},
	"GET /rules/{rule}/topics/{topic}":                 {routeRule, "viewer", http.StatusOK},

	"GET /topics/{topic}/whom":                                  {routeTopic + "/whom?by=header:tenant", "reader", http.StatusOK},
	"GET /topics/{topic}/redrive":                               {routeTopic + "/redrive", "operator", 0},
	"GET /topics/{topic}/discard":                               {routeTopic + "/discard", "operator", http.StatusOK},
	"GET /topics/{topic}/letters/{partition}/{offset}/redrive":  {routeLetter + "/redrive", "operator", 0},
	"GET /topics/{topic}/letters/{partition}/{offset}/discard":  {routeLetter + "/discard", "operator", http.StatusOK},
	"GET /topics/{topic}/letters/{partition}/{offset}/reopen":   {routeLetter + "/reopen", "operator", http.StatusOK},
	"POST /topics/{topic}/redrive":                              {routeTopic + "/redrive", "operator", 0},
	"POST /topics/{topic}/discard":                              {routeTopic + "/discard", "operator", 0},
	"POST /topics/{topic}/letters/{partition}/{offset}/redrive": {routeLetter + "/redrive", "operator", 0},
	"POST /topics/{topic}/letters/{partition}/{offset}/discard": {routeNone + "/discard", "operator", http.StatusNotFound},
	"POST /topics/{topic}/letters/{partition}/{offset}/reopen":  {routeNone + "/reopen", "operator", http.StatusNotFound},
	"POST /topics/{topic}/runs/{run}/abort":                     {routeRun + "/abort", "operator", http.StatusNotFound},
	"POST /topics/{topic}/runs/{run}/resume":                    {routeRun + "/resume", "operator", http.StatusNotFound},
	"POST /rules/{rule}/topics/{topic}":                         {routeRule, "admin", http.StatusSeeOther},
}

// untilLive is a browser that leaves when it has got the first live part of a page.
type untilLive struct {
	*httptest.ResponseRecorder
	mu    sync.Mutex
	leave func()
}

func (u *untilLive) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, err := u.ResponseRecorder.Write(b)
	if strings.Contains(u.Body.String(), "event: live") {
		u.leave()
	}
	return n, err
}

func (u *untilLive) FlushError() error { return nil }

// asks returns the answer to a request with a token, empty for none.
func asks(t *testing.T, s *serve.Server, method, path, token, accept string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
	defer leave()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", accept)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := &untilLive{ResponseRecorder: httptest.NewRecorder(), leave: leave}
	handlerOf(s).ServeHTTP(w, r)
	return w.ResponseRecorder
}

// Each route of the console takes its role, as a page and as a stream: others are refused in words,
// see nothing of the topic, and do nothing. A route without a row above fails the test.
func TestServer_ConsoleEachRouteTakesItsRole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	roles := []string{"nobody", "viewer", "reader", "operator", "admin"}
	grants := map[string]string{"the-nobody": "[{role: admin, topics: [bills*]}]"}
	for _, role := range roles[1:] {
		grants["the-"+role] = "[{role: " + role + "}]"
	}
	s, _ := c.run(serve.Config{
		Access:    serve.Access{TokensFile: tokenFile(t, grants), OpenMetrics: true},
		RulesFile: rules(t, "rules: [{name: slow gateway, topics: 'orders*', classes: [http.*], cool-down: 1h}]"),
	})
	c.fail("orders", "decode", 3)
	cl := c.clientOf(s, "the-admin")
	opens(t, cl, "orders.dlq", 3)
	routes := s.ConsoleRoutes()
	if len(routes) != len(routeCases) {
		t.Errorf("the console has %d routes, and %d are known", len(routes), len(routeCases))
	}
	begin := url.Values{"do": {"begin"}, "key": {"k"}, "why": {"w"}, "expect": {"99"}}
	for _, route := range routes {
		is, known := routeCases[route]
		if !known {
			t.Errorf("%s has no row: who gets an answer?", route)
			continue
		}
		method, _, _ := strings.Cut(route, " ")
		accepts := []string{"text/html"}
		var form url.Values
		switch {
		case method == http.MethodPost:
			form = begin
		case !strings.HasPrefix(route, http.MethodGet):
			method = http.MethodGet
		case is.least != "anybody":
			accepts = append(accepts, "text/event-stream")
		}
		for _, accept := range accepts {
			what := route + " as " + accept
			w := asks(t, s, method, is.path, "", accept, form)
			if want := map[bool]int{true: is.code, false: http.StatusUnauthorized}[is.least == "anybody"]; w.Code != want || strings.Contains(w.Body.String(), "decode") {
				t.Errorf("%s without credentials: %d, want %d: %s", what, w.Code, want, w.Body)
			}
			if is.least == "anybody" {
				continue
			}
			least := slices.Index(roles, is.least) // -1 for any
			for rank, role := range roles {
				w := asks(t, s, method, is.path, "the-"+role, accept, form)
				text := w.Body.String()
				switch {
				case rank == 0 && (strings.Contains(text, "decode") || strings.Contains(text, "slow gateway")):
					t.Errorf("%s shows the topic to a user without a role: %s", what, text)
				case rank == 0 && least >= 0:
					if w.Code != http.StatusNotFound {
						t.Errorf("%s without a role: %d", what, w.Code)
					}
				case rank < least:
					if w.Code != http.StatusForbidden || !strings.Contains(text, "takes the role "+is.least) {
						t.Errorf("%s of a %s: %d: %s", what, role, w.Code, text)
					}
				case is.code != 0 && w.Code != is.code, is.code == 0 && (w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized || w.Code >= http.StatusInternalServerError):
					t.Errorf("%s of a %s: %d, want %d: %s", what, role, w.Code, is.code, text)
				case w.Code == http.StatusOK && accept != "text/html" && is.isPage(route) && !strings.Contains(text, "event: live"):
					t.Errorf("%s of a %s is no stream: %s", what, role, text)
				}
			}
		}
	}
	if runs, err := cl.Runs(t.Context(), "orders.dlq", 0); err != nil || len(runs) != 0 {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
	opens(t, cl, "orders.dlq", 3)
}

// isPage reports whether a route is followed by a stream: it is no form.
func (is routeCase) isPage(route string) bool {
	return is.least != "operator" && route != "GET /rules/{rule}/topics/{topic}" && route != "GET /topics/{topic}/whom"
}
