package console

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/admit"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// open returns a console without access control, over a desk that knows of no topic yet.
func open(t testing.TB) *Console {
	t.Helper()
	who, err := access.New(nil, nil, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return openFor(t, who)
}

// openFor is open for those whom an authenticator knows.
func openFor(t testing.TB, who *access.Authenticator) *Console {
	t.Helper()
	b, err := access.NewBrowser(who, nil, "http://127.0.0.1:8642", "")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	cluster := watch.New(watch.Config{Refresh: time.Second, Log: log})
	c := New(Config{Gate: admit.New(who), Browser: b, Desk: operate.New(operate.Config{Cluster: cluster, Log: log}), Log: log})
	t.Cleanup(c.End)
	return c
}

// ask returns what a handler answers to a request for a page.
func ask(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// paths are all pages, each with several filters.
var paths = []string{
	"/", "/topics/orders.dlq", "/topics/orders.dlq?class=http.503&since=6h&state=failed", "/topics/orders.dlq?cursor=x&group=billing&fingerprint=f&reason=terminal&until=1h",
	"/topics/orders.dlq/letters/1/5", "/topics/orders.dlq/letters/1/5?value=text", "/topics/orders.dlq/letters/1/5?value=hex",
	"/topics/orders.dlq/redrive", "/topics/orders.dlq/redrive?class=http.503&rate=x", "/topics/orders.dlq/redrive?offset=1:5&offset=1:4&patch=%7B%7D", "/topics/orders.dlq?offset=0:1&offset=0:2&offset=0:3&offset=0:4", "/topics/orders.dlq/letters/1/5/redrive", "/topics/orders.dlq/discard", "/topics/orders.dlq/whom", "/topics/orders.dlq/whom?class=http.503&by=value.customer", "/topics/orders.dlq/discard?class=http.503&since=1h", "/topics/orders.dlq/letters/1/6", "/topics/orders.dlq/letters/1/7", "/topics/orders.dlq/letters/1/6/discard",
	"/topics/orders.dlq/letters/1/7/reopen", "/rules", "/rules/an%20outage/topics/orders.dlq", "/runs", "/topics/orders.dlq/runs/r0", "/topics/orders.dlq/runs/billing", "/topics/orders.dlq/runs/none", "/audit", "/audit?topic=orders.dlq&by=ada", "/nowhere", "/topics/orders.dlq?since=yesterday", "/topics/orders.dlq/letters/x/y",
}

// parse returns the elements of a page, in their order.
func parse(t testing.TB, page io.Reader) (all []*html.Node) {
	t.Helper()
	root, err := html.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

// attr returns an attribute of an element.
func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text within an element.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// shape returns the elements of a page with the names of their attributes.
func shape(all []*html.Node) []string {
	var names []string
	for _, n := range all {
		if n.Data == "wbr" {
			continue // a name may break there
		}
		var keys []string
		for _, a := range n.Attr {
			keys = append(keys, a.Key)
		}
		slices.Sort(keys)
		depth := 0
		for p := range n.Ancestors() {
			_ = p
			depth++
		}
		names = append(names, strings.Repeat(" ", depth)+n.Data+"["+strings.Join(keys, " ")+"]")
	}
	return names
}

// look returns the text of the live part of a page.
func look(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	return textOf(partOf(t, ask(h, path), "main"))
}

// partOf returns the element of a page with an id.
func partOf(t *testing.T, w *httptest.ResponseRecorder, id string) *html.Node {
	t.Helper()
	for _, n := range parse(t, strings.NewReader(w.Body.String())) {
		if attr(n, "id") == id {
			return n
		}
	}
	t.Fatalf("the page has no %s: %s", id, w.Body)
	return nil
}

func has(t *testing.T, where, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s lacks %q: %s", where, w, text)
		}
	}
}
