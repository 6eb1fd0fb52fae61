package serve_test

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/oidc"
)

// mounted is a server below /siding of a team's own service, and a user with a browser.
type mounted struct {
	t       *testing.T
	address string // of the team's service
	browser *http.Client
}

// mount mounts a server in a service, behind a path that the service uses for pages of its own.
func (c *cluster) mount(cfg serve.Config) *mounted {
	c.T.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a page of the team: "+r.URL.Path)
	})
	h := httptest.NewUnstartedServer(mux)
	m := &mounted{t: c.T, address: "http://" + h.Listener.Addr().String()}
	cfg.URL = m.address + "/siding"
	s, _ := c.run(cfg)
	mux.Handle("/siding/", http.StripPrefix("/siding", s.Handler()))
	h.Start()
	c.T.Cleanup(h.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.T.Fatal(err)
	}
	m.browser = &http.Client{Jar: jar, Transport: h.Client().Transport}
	return m
}

// client returns a client with a token.
func (m *mounted) client(token string) *client.Client {
	m.t.Helper()
	cl, err := client.New(m.address+"/siding", token, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return cl
}

// get opens a page, and returns its text and the path at which it is after redirects.
func (m *mounted) get(path string, header ...string) (code int, text, at string) {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, m.address+path, http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return m.do(r)
}

func (m *mounted) do(r *http.Request) (code int, text, at string) {
	m.t.Helper()
	answer, err := m.browser.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Request.URL.RequestURI()
}

// sends fills in the first form of a page whose action ends in some path, and sends it.
func (m *mounted) sends(page, action string, with map[string]string) (code int, text, at string) {
	m.t.Helper()
	to, fields := formIn(m.t, page, func(n *html.Node) bool {
		to, _, _ := strings.Cut(attribute(n, "action"), "?")
		return strings.HasSuffix(to, action)
	}, with)
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.address+to, strings.NewReader(fields.Encode()))
	if err != nil {
		m.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return m.do(r)
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// addresses returns where the elements of a page lead, and which of these a browser only gets.
func addresses(t *testing.T, page string) (all map[string]bool) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]bool{}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src", "hx-get", "data-stream":
				if !strings.HasPrefix(a.Val, "#") && a.Val != "" {
					all[a.Val] = true
				}
			case "action", "hx-post":
				all[a.Val] = all[a.Val] || strings.EqualFold(attribute(n, "method"), "get")
			}
		}
	}
	return all
}

// ids are what pages of one kind differ by: partitions, offsets and runs.
var ids = regexp.MustCompile(`\b[0-9]+\b|/runs/[^/]+`)

// kindsOf returns the kinds of page that an address is of: its path without numbers and ids, by
// itself and with each parameter. A file is of its own kind.
func kindsOf(t *testing.T, address string) (all []string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(u.Path, "/static/") {
		return []string{address}
	}
	path := ids.ReplaceAllString(u.Path, "*")
	all = []string{path}
	for key := range u.Query() {
		all = append(all, path+"?"+key)
	}
	return all
}

// crawl opens a page, and each kind of page to which the opened ones lead: filters lead to more and
// more addresses. It returns the addresses.
func (m *mounted) crawl(from string) (opened []string) {
	m.t.Helper()
	seen := map[string]bool{}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		kinds := kindsOf(m.t, next[0])
		if !slices.ContainsFunc(kinds, func(kind string) bool { return !seen[kind] }) {
			continue
		}
		for _, kind := range kinds {
			seen[kind] = true
		}
		opened = append(opened, next[0])
		code, text, _ := m.get(next[0])
		if code != http.StatusOK {
			m.t.Errorf("%s: %d", next[0], code)
		}
		if strings.Contains(next[0], "/static/") {
			continue
		}
		links := addresses(m.t, text)
		for _, to := range slices.Sorted(maps.Keys(links)) {
			if !strings.HasPrefix(to, "/siding/") {
				m.t.Errorf("%s leads to %q", next[0], to)
			} else if links[to] {
				next = append(next, to)
			}
		}
	}
	return opened
}

// A team mounts the server below a path of its own service. Each link of each page, and each file
// that a page loads, is below that path, and there.
func TestServer_MountedLinksLeadToItsPages(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	c.outage(5)
	m := c.mount(serve.Config{RulesFile: rules(t, "rules: [{name: an outage, topics: 'orders*', classes: [http.*], cool-down: 1h}]")})
	cl := m.client("")
	opens(t, cl, "orders.dlq", 5)
	run, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, api.RunOptions{Pace: quick}, "")
	if err != nil {
		t.Fatal(err)
	}
	ends(t, cl, run)
	kinds := map[string]int{}
	for _, path := range m.crawl("/siding/") {
		for _, kind := range []string{"/static/", "/letters/", "/runs/", "/rules/", "/audit", "/redrive", "/discard"} {
			if strings.Contains(path, kind) {
				kinds[kind]++
			}
		}
	}
	if len(kinds) != 7 {
		t.Errorf("only these pages were seen: %v", kinds)
	}
	if _, text, _ := m.get("/topics/orders.dlq"); text != "a page of the team: /topics/orders.dlq" {
		t.Errorf("the team's own page is %s", text)
	}
	if code, text, _ := m.get("/siding/metrics"); code != http.StatusOK || !strings.Contains(text, "siding_dead_letters_open") {
		t.Errorf("the metrics: %d", code)
	}
	if code, _, _ := m.get("/siding/readyz"); code != http.StatusOK {
		t.Errorf("the probe: %d", code)
	}
	// the API: lists, and events
	states := 0
	for e, err := range cl.Follow(t.Context(), "orders.dlq", run.ID, "") {
		if err != nil || e.Run.ID != run.ID {
			t.Fatalf("an event: %+v, %v", e, err)
		}
		states++
	}
	if states == 0 {
		t.Error("the API sent no event")
	}
	// what is live
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.address+"/siding/topics/orders.dlq", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	answer, err := m.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	live := ""
	for lines := bufio.NewScanner(answer.Body); lines.Scan() && !strings.Contains(live, "<table"); {
		live += strings.TrimPrefix(lines.Text(), "data: ")
	}
	for to := range addresses(t, live) {
		if !strings.HasPrefix(to, "/siding/") {
			t.Errorf("a live page leads to %q", to)
		}
	}
	if !strings.Contains(live, `"/siding/topics/orders.dlq`) {
		t.Errorf("the live page is %s", live)
	}
}

// Below a path people sign in, by a token and at the provider, come back to the page that they
// wanted, send forms, and sign out. Nothing leaves the path.
func TestServer_MountedPeopleSignInAndAct(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	c := newCluster(t, "orders")
	c.outage(5)
	m := c.mount(serve.Config{OpenID: oidc.Open, Access: serve.Access{
		TokensFile: tokenFile(t, map[string]string{"ada": "[{role: operator}]"}),
		OIDC:       &access.OIDC{Issuer: p.URL, ClientID: "siding", Groups: map[string][]access.Grant{"oncall": {{Role: access.Operator}}}},
	}})
	cl := m.client("ada")
	opens(t, cl, "orders.dlq", 5)
	is := func(what string, code int, text, at, wantAt string, want ...string) string {
		t.Helper()
		if code != http.StatusOK || !strings.HasPrefix(at, wantAt) {
			t.Fatalf("%s: %d at %s, want %s: %s", what, code, at, wantAt, text)
		}
		for _, one := range want {
			if !strings.Contains(text, one) {
				t.Errorf("%s lacks %q: %s", what, one, text)
			}
		}
		return text
	}
	const wanted = "/siding/topics/orders.dlq?class=http.503"
	code, page, _ := m.get(wanted)
	if code != http.StatusUnauthorized {
		t.Fatalf("without a session: %d", code)
	}
	code, page, at := m.sends(page, "/siding/sign-in", map[string]string{"token": "ada"})
	is("signing in by a token", code, page, at, wanted, "token ada")
	// a filter's form, the theme, and a run
	code, page, at = m.sends(page, "/siding/theme", nil)
	is("the theme", code, page, at, wanted, `data-theme="dark"`)
	code, page, at = m.get("/siding/topics/orders.dlq?class=http.503&group=")
	is("a filter", code, page, at, wanted)
	if strings.Contains(at, "group") {
		t.Errorf("the filter is at %s", at)
	}
	code, page, at = m.get("/siding/topics/orders.dlq/redrive?class=http.*&" + quickly)
	page = is("a plan", code, page, at, "/siding/topics/orders.dlq/redrive", "Sends 5 letters")
	code, page, at = m.sends(page, "/redrive", map[string]string{"why": "fixed"})
	page = is("a run", code, page, at, "/siding/topics/orders.dlq/runs/", "token ada")
	code, page, at = m.sends(page, "/siding/sign-out", nil)
	is("signing out", code, page, at, "/siding/sign-in", "Sign in")
	code, page, at = m.get("/siding/sign-in/provider?" + url.Values{"back": {"/topics/orders.dlq?class=http.503"}}.Encode())
	is("signing in at the provider", code, page, at, wanted, "openid ann")
	code, page, at = m.get("/siding/sign-in/callback?code=x&state=y")
	if code != http.StatusUnauthorized || !strings.Contains(page, `"/siding/sign-in/provider`) || at != "/siding/sign-in/callback?code=x&state=y" {
		t.Errorf("a sign-in that no browser began: %d at %s: %s", code, at, page)
	}
}
