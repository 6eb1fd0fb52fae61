package serve_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
)

// visit returns the answer to a browser, and the words of the page.
func visit(t *testing.T, s *serve.Server, r *http.Request) (*httptest.ResponseRecorder, string) {
	t.Helper()
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	w := httptest.NewRecorder()
	handlerOf(s).ServeHTTP(w, r)
	// <wbr> is where a name may break.
	root, err := html.Parse(strings.NewReader(strings.ReplaceAll(w.Body.String(), "<wbr>", "")))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
	}
	return w, strings.Join(strings.Fields(b.String()), " ")
}

func words(t *testing.T, s *serve.Server, path string, want ...string) {
	t.Helper()
	w, text := visit(t, s, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d: %s", path, w.Code, text)
	}
	for _, one := range want {
		if !strings.Contains(text, one) {
			t.Errorf("%s lacks %q: %s", path, one, text)
		}
	}
}

// The console shows what the topics and their ledgers have.
func TestServer_ConsoleShowsAnIncident(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{})
	c.fail("orders", "http.503", 60)
	c.fail("orders", "decode", 3)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 3`)
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.Opts...)
	if _, err := l.Discard(t.Context(), dlq.Filter{Classes: []string{"decode"}, Ranges: []dlq.Range{{Partition: 1}}}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "a <b>typo</b>"}); err != nil {
		t.Fatal(err)
	}
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 2`)
	words(t, s, "/", "62 open in 1 topic", "orders.dlq", "bills.dlq", "all settled", "http.503", "the first letters of decode, http.503")
	words(t, s, "/topics/orders.dlq", "62 open · growing", "http.503 NEW", "it failed", "billing", "Older letters", "Resolved and still in the topic: 1.")
	words(t, s, "/topics/orders.dlq?class=decode&since=1h", "class: decode", "since: 1h")
	words(t, s, "/topics/orders.dlq?state=discarded", "Letters: discarded")
	words(t, s, "/topics/orders.dlq?state=all", "Letters: all")
	words(t, s, "/topics/orders.dlq/letters/1/0", "Produced", "Dead-lettered", "a retry does not repair this failure", "Value 1 byte")
	words(t, s, "/audit", "1 decision", "ada", "discarded", "a <b>typo</b>", "orders.dlq")
	// an older page has older letters
	w, _ := visit(t, s, httptest.NewRequest(http.MethodGet, "/topics/orders.dlq", nil))
	_, after, _ := strings.Cut(w.Body.String(), `rel="next"`)
	if after == "" {
		t.Fatal("there is no next page")
	}
	before, _, _ := strings.Cut(w.Body.String(), `" rel="next"`)
	next := html.UnescapeString(before[strings.LastIndex(before, `href="`)+len(`href="`):])
	next, _, _ = strings.Cut(next, "#")
	words(t, s, next, "The newest")
	for path, want := range map[string]int{"/topics/orders": 404, "/topics/orders.dlq?cursor=x": 400, "/topics/orders.dlq/letters/1/77": 404} {
		if w, text := visit(t, s, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != want || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d: %s", path, w.Code, text)
		}
	}
}

// The console's people are the API's. A user without credentials reads how to get in, and what
// users may not see is not there.
func TestServer_ConsoleShowsWhatSomebodyMaySee(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{Access: serve.Access{OpenMetrics: true, TokensFile: tokenFile(t, map[string]string{"ada": "[{role: reader, topics: [orders*]}]", "bob": "[{role: viewer}]"})}})
	c.fail("orders", "decode", 1)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 1`)
	for _, path := range []string{"/", "/topics/orders.dlq", "/topics/orders.dlq/letters/1/0", "/audit", "/nowhere"} {
		if w, text := visit(t, s, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != http.StatusUnauthorized || !strings.Contains(text, "Sign in") || strings.Contains(text, "decode") {
			t.Errorf("%s without credentials: %d: %s", path, w.Code, text)
		}
	}
	wrong := &person{t: t, s: s}
	if w, text := wrong.do(http.MethodPost, "/sign-in", url.Values{"token": {"x"}}); w.Code != http.StatusUnauthorized || !strings.Contains(text, "nobody has this token") || len(w.Result().Cookies()) != 0 {
		t.Errorf("a wrong token: %d: %s", w.Code, text)
	}
	if w, text := wrong.do(http.MethodPost, "/sign-in", url.Values{"token": {"ada"}, "back": {"/topics/orders.dlq"}}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/topics/orders.dlq" {
		t.Errorf("signing in: %d to %q: %s", w.Code, w.Header().Get("Location"), text)
	}
	ada, bob := signIn(t, s, "ada"), signIn(t, s, "bob")
	for _, test := range []struct {
		who     *person
		path    string
		status  int
		has, no string
	}{
		{ada, "/", 200, "orders.dlq", "bills.dlq"},
		{bob, "/", 200, "bills.dlq", "no role"},
		{ada, "/topics/bills.dlq", 404, "token ada may see", "settled"},
		{ada, "/topics/orders.dlq", 200, "token ada (reader)", "bills"},
		{bob, "/topics/orders.dlq", 200, "token bob (viewer)", "ada"},
		{ada, "/topics/orders.dlq/letters/1/0", 200, "Value 1 byte", "for the role"},
		{bob, "/topics/orders.dlq/letters/1/0", 200, "for the role reader", "Value 1 byte"},
		{ada, "/audit", 200, "orders.dlq", "bills.dlq"},
		{ada, "/audit?topic=bills.dlq", 404, "token ada may see", "decision"},
		{bob, "/audit", 200, "bills.dlq", "ada"},
	} {
		w, text := test.who.do(http.MethodGet, test.path, nil)
		if w.Code != test.status || !strings.Contains(text, test.has) || strings.Contains(text, test.no) {
			t.Errorf("%s: %d, want %d with %q, without %q: %s", test.path, w.Code, test.status, test.has, test.no, text)
		}
	}
	// a session is for the console; the API has its own credentials
	if w, _ := ada.do(http.MethodGet, "/api/v1/topics", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("the API takes a session: %d", w.Code)
	}
}
