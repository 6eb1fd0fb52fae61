package serve_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// send sends a request from this machine, and returns the answer.
func send(t *testing.T, s *serve.Server, method, path, body string, header ...string) *http.Response {
	t.Helper()
	return sendTo(t, handlerOf(s), method, path, body, header...)
}

func sendTo(t *testing.T, h http.Handler, method, path, body string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// kindOf returns the kind of a problem, and fails if the answer is none.
func kindOf(t *testing.T, what string, answer *http.Response) api.Kind {
	t.Helper()
	text, err := io.ReadAll(answer.Body)
	var p api.Problem
	if err != nil || answer.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(text, &p) != nil || p.Detail == "" || p.Status != answer.StatusCode {
		t.Errorf("%s: %d, %s is not a problem with words", what, answer.StatusCode, text)
	}
	return p.Kind()
}

// tokenFile writes a file of tokens: each is its own name, and has the grants of YAML.
func tokenFile(t *testing.T, grants map[string]string) string {
	t.Helper()
	text := "tokens:\n"
	for token, grant := range grants {
		text += fmt.Sprintf("  - {name: %s, sha256: %x, grants: %s}\n", token, sha256.Sum256([]byte(token)), grant)
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Each error is a problem with a stable type and a text that says what to do; nothing panics.
func TestServer_BadInputIsAProblem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{RulesFile: rules(t, "rules: [{name: bills, topics: 'bills*', classes: [http.*]}]")})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	const topic = "/api/v1/topics/orders.dlq"
	for _, test := range []struct {
		method, path, body string
		want               api.Kind
	}{
		{http.MethodGet, "/api/v1/topics/nobody.dlq", "", api.NoTopic},
		{http.MethodGet, "/api/v1/topics/orders", "", api.NoTopic},
		{http.MethodGet, "/api/v1/topic", "", api.NoRoute},
		{http.MethodPut, "/api/v1/topics", "", api.NoRoute},
		{http.MethodGet, topic + "/letters?cursor=x", "", api.BadCursor},
		{http.MethodGet, topic + "/letters?cursor=v1/bills.dlq/0:1-2", "", api.BadCursor},
		{http.MethodGet, topic + "/letters?cursor=v1/orders.dlq/", "", api.BadCursor},

		{http.MethodGet, topic + "/letters/0/-1", "", api.InvalidRequest},
		{http.MethodGet, topic + "/groups?where=true", "", api.BadFilter},

		{http.MethodPost, topic + "/runs", `{"filter":{"state":["discarded"]}}`, api.BadFilter},
		{http.MethodPost, topic + "/runs", `{}`, api.NothingSelected},
		{http.MethodPost, topic + "/discard", `{"why":"x"}`, api.InvalidRequest},
		{http.MethodPost, topic + "/discard", `{"expect":1}`, api.InvalidRequest},
		{http.MethodPost, topic + "/discard", `{"why":"` + strings.Repeat("x", 300<<10) + `","expect":1}`, api.TooLarge},
		{http.MethodPost, "/api/v1/rules/none/topics/orders.dlq/pause", `{}`, api.NoRule},
		// it is not for this topic
		{http.MethodPost, "/api/v1/rules/bills/topics/orders.dlq/pause", `{}`, api.NoRule},
	} {
		what := test.method + " " + test.path
		if got := kindOf(t, what, send(t, s, test.method, test.path, test.body)); got != test.want {
			t.Errorf("%s %.60s: %q, want %q", what, test.body, got, test.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/topics", nil)
	r.Host, r.RemoteAddr = "evil.example", "127.0.0.1:5000"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if got := kindOf(t, "another host", w.Result()); got != api.Unauthenticated {
		t.Errorf("a page of another site: %q", got)
	}
}

// A browser carries out no request of another site's page.
func TestServer_RefusesPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}} {
		for _, path := range []string{"/api/v1/topics/orders.dlq/runs", "/topics/orders.dlq/redrive", "/theme"} {
			if got := kindOf(t, header[0], send(t, s, http.MethodPost, path, "{}", header...)); got != api.CrossOrigin {
				t.Errorf("%s, %v: %q", path, header, got)
			}
		}
	}
	if got := kindOf(t, "same origin", send(t, s, http.MethodPost, "/api/v1/topics/none.dlq/runs", "{}", "Sec-Fetch-Site", "same-origin")); got != api.NoTopic {
		t.Errorf("a page of the server: %q", got)
	}
}

// A letter has its history; key, headers and value are for readers, and so are filters by them.
func TestServer_LetterShowsItsContentToReaders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{Access: serve.Access{OpenMetrics: true, TokensFile: tokenFile(t, map[string]string{
		"ada": "[{role: viewer}, {role: reader, topics: [orders*]}]", "bob": "[{role: viewer}]",
	})}})
	ada, bob := c.clientOf(s, "ada"), c.clientOf(s, "bob")
	c.fail("orders", "decode", 1)
	opens(t, ada, "orders.dlq", 1)
	l, err := ada.Letter(t.Context(), "orders.dlq", 1, 0)
	if err != nil || l.Class != "decode" || l.Message != "it failed" || l.Original.Topic != "orders" || l.Content == nil || l.Content.Value.Text == nil || *l.Content.Value.Text != "v" || l.Content.Key.Text != nil {
		t.Errorf("a reader sees %+v, %v", l, err)
	}
	if l.Environment != "staging" || l.Host != "orders-7" {
		t.Errorf("it failed in environment %q on host %q, want staging, orders-7", l.Environment, l.Host)
	}
	if l, err = bob.Letter(t.Context(), "orders.dlq", 1, 0); err != nil || l.Content != nil || l.Message == "" {
		t.Errorf("a viewer sees %+v, %v", l, err)
	}
	for name, f := range map[string]api.Filter{"key": {Key: []string{"k"}}, "header": {Header: []string{"h"}}, "where": {Where: "true"}} {
		if _, err := bob.Letters(t.Context(), "orders.dlq", f, "", 0); !client.IsProblem(err, api.NoRole) {
			t.Errorf("a viewer filters by %s: %v", name, err)
		}
		if _, err := ada.Letters(t.Context(), "orders.dlq", f, "", 0); err != nil {
			t.Errorf("a reader filters by %s: %v", name, err)
		}
	}
	if _, err := ada.Letter(t.Context(), "orders.dlq", 1, 7); !client.IsProblem(err, api.NoLetter) {
		t.Errorf("a letter that does not exist: %v", err)
	}
}

// leastRoles is the least role that each operation takes on its topic; "any" is an operation that
// answers all senders with what they may see.
var leastRoles = map[string]string{
	"list-topics": "any", "list-all-runs": "any", "list-rules": "any", "list-rule-history": "any",
	"get-topic": "viewer", "list-groups": "viewer", "list-classes": "viewer", "list-consumers": "viewer", "list-letters": "viewer", "get-letter": "viewer",
	"list-runs": "viewer", "list-acts": "viewer", "get-run": "viewer", "follow-run": "viewer", "try-rule": "viewer", "try-retention": "viewer",
	"export-letters": "reader", "count-values": "reader",
	"plan-run": "operator", "start-run": "operator", "redrive-letter": "operator", "abort-run": "operator", "resume-run": "operator",
	"discard-letter": "operator", "reopen-letter": "operator", "discard-letters": "operator",
	"pause-rule": "admin", "resume-rule": "admin", "apply-retention": "admin",
}

// bodies are what the operations are sent.
var bodies = map[string]string{
	"discard-letter": `{"why":"x"}`, "reopen-letter": `{"why":"x"}`, "discard-letters": `{"why":"x","expect":9}`,
}

// Each route of the description answers no sender without credentials, and only those whose role on
// the topic is high enough. Others learn which role it takes, or not even that there is such a
// topic.
func TestServer_EachRouteTakesItsRole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	roles := []string{"none", "viewer", "reader", "operator", "admin"}
	grants := map[string]string{"the-none": "[{role: admin, topics: [bills*]}]"}
	for _, r := range roles[1:] {
		grants["the-"+r] = "[{role: " + r + ", topics: [orders*]}]"
	}
	s, _ := c.run(serve.Config{Access: serve.Access{OpenMetrics: true, TokensFile: tokenFile(t, grants)}})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	operations := operationsOf(t, s)
	if len(operations) != len(leastRoles) {
		t.Fatalf("%d operations, want %d", len(operations), len(leastRoles))
	}
	names := strings.NewReplacer("{topic}", "orders.dlq", "{partition}", "0", "{offset}", "0", "{run}", "x", "{rule}", "y")
	for id, route := range operations {
		least, known := leastRoles[id]
		if !known {
			t.Errorf("operation %s has no role in this table", id)
		}
		body := bodies[id]
		if body == "" && route[0] == http.MethodPost {
			body = "{}"
		}
		path := names.Replace(route[1])
		if id == "count-values" {
			path += "?by=header:tenant"
		}
		if got := kindOf(t, id, send(t, s, route[0], path, body)); got != api.Unauthenticated {
			t.Errorf("%s without credentials: %q", id, got)
		}
		for rank, role := range roles {
			answer := send(t, s, route[0], path, body, "Authorization", "Bearer the-"+role)
			if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: a browser may keep the answer, or take it for HTML: %v", id, answer.Header)
			}
			var got api.Kind
			if answer.StatusCode >= http.StatusBadRequest {
				got = kindOf(t, id, answer)
			}
			switch {
			case least == "any":
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%s as %s: %d", id, role, answer.StatusCode)
				}
				if text, _ := io.ReadAll(answer.Body); role == "none" && strings.TrimSpace(string(text)) != "[]" {
					t.Errorf("%s shows %s to a user without a role", id, text)
				}
			case role == "none" && got != api.NoTopic, role != "none" && rank < slices.Index(roles, least) && got != api.NoRole,
				rank >= slices.Index(roles, least) && slices.Contains([]api.Kind{api.Unauthenticated, api.NoRole, api.NoTopic, api.InvalidRequest}, got):
				t.Errorf("%s as %s: %d, %q; the least role is %s", id, role, answer.StatusCode, got, least)
			}
		}
	}
}

// served returns the description that a server gives of its API.
func served(t *testing.T, s *serve.Server) string {
	t.Helper()
	answer := send(t, s, http.MethodGet, "/api/v1/openapi.yaml", "")
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d, %s, %v", answer.StatusCode, text, err)
	}
	return string(text)
}

// operationsOf returns the ids of all operations that a server describes, each with its method and
// path.
func operationsOf(t *testing.T, s *serve.Server) map[string][2]string {
	t.Helper()
	var description struct {
		Paths map[string]map[string]struct {
			OperationID string `yaml:"operationId"`
		}
	}
	if err := yaml.Unmarshal([]byte(served(t, s)), &description); err != nil {
		t.Fatal(err)
	}
	all := map[string][2]string{}
	for path, methods := range description.Paths {
		for method, operation := range methods {
			all[operation.OperationID] = [2]string{strings.ToUpper(method), path}
		}
	}
	return all
}

// The committed description is the one that is served: who reviews a change sees what it does to
// clients. SIDING_UPDATE=1 rewrites it. A change that breaks a client needs another path or field.
func TestServer_ServesTheCommittedDescription(t *testing.T) {
	t.Parallel()
	s, err := serve.New(serve.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const file = "api/openapi.yaml"
	got := served(t, s)
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	switch {
	case string(want) == got:
	case os.Getenv("SIDING_UPDATE") != "":
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what is served: SIDING_UPDATE=1 go test -run Description rewrites it; look whether the difference breaks a client", file)
	}
}

// docs/serve.md has each kind of problem and each route, and no other.
func TestServer_DocsHaveEachProblemAndRoute(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, kinds []string
	for _, m := range regexp.MustCompile(`<a id="([a-z-]+)"></a>\*\*([a-z-]+)\*\*`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1])
		if m[1] != m[2] {
			t.Errorf("the anchor of %s is %s", m[2], m[1])
		}
	}
	for kind := range api.Statuses() {
		kinds = append(kinds, string(kind))
	}
	slices.Sort(documented)
	slices.Sort(kinds)
	if !slices.Equal(documented, kinds) {
		t.Errorf("docs/serve.md has the problems\n%v, the API\n%v", documented, kinds)
	}
	s, err := serve.New(serve.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	operations := operationsOf(t, s)
	for id, route := range operations {
		path := strings.TrimPrefix(route[1], "/api/v1")
		row := regexp.MustCompile(`(?m)^\| ` + route[0] + " `" + regexp.QuoteMeta(path) + "` .*\\| " + leastRoles[id] + ` \|$`)
		if !row.Match(text) {
			t.Errorf("docs/serve.md has no row | %s `%s` | … | %s |", route[0], path, leastRoles[id])
		}
	}
}

// Names with any character reach the server as they are.
func TestServer_PathsTakeAnyName(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	for _, name := range []string{"a/b", "ä ö", "%2e%2e", "<script>"} {
		answer := send(t, s, http.MethodGet, "/api/v1/rules/"+url.PathEscape(name)+"/topics/orders.dlq/dry-run", "")
		if got := kindOf(t, name, answer); got != api.NoRule {
			t.Errorf("rule %q: %q", name, got)
		}
	}
}
