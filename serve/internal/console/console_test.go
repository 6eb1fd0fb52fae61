package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/serve/internal/access"
)

var plain = texts{"tax.TableMiss", `no rate for region "N?"`, `{"id": 7, "amount": 12345678901234567890}`, "billing"}

// No page needs a style or a script within itself, and each answer forbids them.
func TestConsole_PagesKeepTheirPolicy(t *testing.T) {
	t.Parallel()
	c := open(t, newArchive(plain))
	for _, path := range paths {
		w := ask(c, "GET", path)
		for key, want := range map[string]string{"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
			if got := w.Header().Get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", path, key, got, want)
			}
		}
		for _, n := range parse(t, w.Body) {
			switch {
			case n.Data == "style", n.Data == "iframe", n.Data == "object", n.Data == "base", n.Data == "script" && (attr(n, "src") == "" || n.FirstChild != nil):
				t.Errorf("%s has <%s>", path, n.Data)
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Key, "hx-on") {
					t.Errorf("%s: <%s> has the attribute %s", path, n.Data, a.Key)
				}
			}
		}
	}
	for _, banned := range []string{"unsafe-inline", "unsafe-eval", "*", "data:", "http"} {
		if strings.Contains(policy, banned) {
			t.Errorf("the policy has %s", banned)
		}
	}
}

// Pages are made as axe-core and screen readers want them.
func TestConsole_PagesAreAccessible(t *testing.T) {
	t.Parallel()
	empty, settled := newArchive(plain), newArchive(plain)
	empty.empty, settled.settled, settled.held = true, true, true
	for name, data := range map[string]*archive{"full": newArchive(plain), "empty": empty, "settled": settled} {
		c := open(t, data)
		for _, path := range paths {
			all := parse(t, ask(c, "GET", path).Body)
			ids, labelled := map[string]int{}, map[string]bool{}
			headings, level := 0, 0
			for _, n := range all {
				if id := attr(n, "id"); id != "" {
					ids[id]++
				}
				if n.Data == "label" {
					labelled[attr(n, "for")] = true
				}
			}
			is := func(ok bool, format string, n *html.Node) {
				if !ok {
					t.Errorf("%s, %s: "+format, name, path, n.Data, attr(n, "id"), attr(n, "class"))
				}
			}
			for id, times := range ids {
				if times > 1 {
					t.Errorf("%s, %s: the id %s occurs %d times", name, path, id, times)
				}
			}
			for _, n := range all {
				switch n.Data {
				case "html":
					is(attr(n, "lang") != "", "<%s %s %s> has no language", n)
				case "title":
					is(textOf(n) != "", "<%s %s %s> is empty", n)
				case "h1", "h2", "h3":
					if n.Parent.Data == "dialog" {
						continue
					}
					if now := int(n.Data[1] - '0'); now == 1 {
						headings, level = headings+1, 1
					} else {
						is(now <= level+1, "<%s %s %s> skips a level", n)
						level = now
					}
				case "input", "select", "textarea":
					is(attr(n, "type") == "hidden" || labelled[attr(n, "id")] || attr(n, "aria-label") != "", "<%s %s %s> has no label", n)
				case "a", "button":
					hidden := slices.ContainsFunc(slices.Collect(n.Ancestors()), func(p *html.Node) bool { return attr(p, "aria-hidden") == "true" })
					is(hidden || textOf(n) != "" || attr(n, "aria-label") != "", "<%s %s %s> has no name", n)
					is(!hidden || attr(n, "tabindex") == "-1", "<%s %s %s> is hidden and reachable", n)
					is(n.Data != "button" || attr(n, "type") != "", "<%s %s %s> has no type", n)
				case "svg":
					is(attr(n, "aria-hidden") == "true" || attr(n, "role") == "img" && attr(n, "aria-label") != "", "<%s %s %s> has no text", n)
				case "table":
					is(n.FirstChild != nil && slices.ContainsFunc(slices.Collect(n.ChildNodes()), func(c *html.Node) bool { return c.Data == "caption" }), "<%s %s %s> has no caption", n)
				case "th":
					is(attr(n, "scope") != "", "<%s %s %s> has no scope", n)
				case "nav", "section", "search":
					is(attr(n, "aria-label") != "" || ids[attr(n, "aria-labelledby")] == 1, "<%s %s %s> has no name", n)
				case "pre":
					is(attr(n, "tabindex") == "0", "<%s %s %s> scrolls and cannot be reached by keys", n)
				case "time":
					is(attr(n, "datetime") != "" && strings.HasSuffix(attr(n, "title"), "UTC"), "<%s %s %s> has no absolute time", n)
				}
				for _, key := range []string{"aria-labelledby", "aria-describedby"} {
					if id := attr(n, key); id != "" {
						is(ids[id] == 1, "<%s %s %s> refers to what is not there", n)
					}
				}
			}
			if headings != 1 {
				t.Errorf("%s, %s: %d headings of level 1", name, path, headings)
			}
		}
	}
}

// look returns the text of the live part of a page.
func look(t *testing.T, c http.Handler, path string, status int) string {
	t.Helper()
	w := ask(c, "GET", path)
	if w.Code != status {
		t.Fatalf("%s: %d, want %d", path, w.Code, status)
	}
	for _, n := range parse(t, w.Body) {
		if attr(n, "id") == "main" {
			return textOf(n)
		}
	}
	t.Fatalf("%s has no content", path)
	return ""
}

func has(t *testing.T, where, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s lacks %q: %s", where, w, text)
		}
	}
}

// Each page says first how things are, and what nobody knows it does not guess.
func TestConsole_PagesSayHowThingsAre(t *testing.T) {
	t.Parallel()
	data := newArchive(plain)
	c := open(t, data)
	has(t, "the overview", look(t, c, "/", http.StatusOK), "2,114 open in 1 topic · 1 growing · 1 beyond a threshold", "orders.dlq high", "oldest 4 h ago", "page 2,114 letters open", "tax.TableMiss")
	has(t, "the incident", look(t, c, "/topics/orders.dlq", http.StatusOK),
		"2,114 open · 3 redriven, outcome pending · growing, 31 in the last 5 min · oldest 4 h ago · retention takes the first in 8 d",
		"tax.TableMiss NEW", `no rate for region "N?"`, "1,902", "20 s ago", "http.503 QUIET", "no class FAILED AGAIN", "unknown", "sending · 5 of 9 sent", "Older letters")
	has(t, "the letter", look(t, c, "/topics/orders.dlq/letters/1/5", http.StatusOK),
		"failed again after it was brought back", "Produced 2 h ago", "Brought back", "1 earlier attempt", "no longer in the history", "Attempt 2 tax.TableMiss", "5 s later Attempt 3, call 1",
		"Dead-lettered", "its attempts were used up · after 3 attempts", "by billing", "changed: headers and value", "Failed again", `"amount": 12345678901234567890`, "raw 2 bytes, hex", "null")
	has(t, "the audit", look(t, c, "/audit", http.StatusOK), "8 decisions", "discarded", "began a run", "aborted", "no reason given")
	data.role = access.Viewer
	if text := look(t, c, "/topics/orders.dlq/letters/1/6", http.StatusOK); strings.Contains(text, "amount") {
		t.Errorf("a viewer reads the value: %s", text)
	} else {
		has(t, "the letter of a viewer", text, "for the role reader on orders.dlq")
	}
	settled := newArchive(plain)
	settled.settled = true
	c = open(t, settled)
	has(t, "the overview", look(t, c, "/", http.StatusOK), "all settled: no open letters in 1 topic")
	has(t, "the incident", look(t, c, "/topics/orders.dlq", http.StatusOK), "all settled", "No open letters. A record comes here when")
	has(t, "the audit", look(t, c, "/audit", http.StatusOK), "no decisions yet")
	settled.held = true
	c = open(t, settled)
	has(t, "the overview", look(t, c, "/", http.StatusOK), "records held or strained in 1 topic", "held since 12 min ago by "+settled.name+" (3 of 3 partitions), 12,400 records wait, most failures are "+settled.class+" · 0 open")
	has(t, "the incident", look(t, c, "/topics/orders.dlq", http.StatusOK), "· 0 open", "While groups hold records of orders back")
	for _, path := range []string{"/", "/topics/orders.dlq"} {
		if text := look(t, c, path, http.StatusOK); strings.Contains(text, "all settled") || strings.Contains(text, "quiet") {
			t.Errorf("%s: a topic that is held looks calm: %s", path, text)
		}
	}
	none := newArchive(plain)
	none.empty = true
	has(t, "the overview", look(t, open(t, none), "/", http.StatusOK), "There is no dead-letter topic that local may see", "viewer")
}

// What an address has wrong is told in words, with what is allowed.
func TestConsole_BadInputIsAPage(t *testing.T) {
	t.Parallel()
	c := open(t, newArchive(plain))
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/topics/orders.dlq?since=yesterday":         {400, `"yesterday" is not a time: as in 6h or 2d`},
		"/topics/orders.dlq?state=odd":               {400, `"odd" is no state of letters`},
		"/topics/orders.dlq?since=1h&until=2h":       {400, "since is not before until"},
		"/topics/orders.dlq/letters/1/-5":            {400, "1/-5 is no letter"},
		"/topics/orders.dlq/letters/9999999999/5":    {400, "is no letter"},
		"/topics/orders.dlq/letters/1/404":           {404, "it expired, or never existed"},
		"/topics/orders.dlq/letters/1/5?value=image": {400, `not shown as "image"`},
		"/topics/other.dlq":                          {404, `There is no dead-letter topic "other.dlq" that local may see`},
		"/audit?topic=other.dlq":                     {404, `There is no dead-letter topic "other.dlq" that local may see`},
		"/nowhere":                                   {404, "There is no such page"},
	} {
		has(t, path, look(t, c, path, want.status), want.text)
	}
	if w := ask(c, "GET", "/api/v1/nowhere"); w.Code != 404 || strings.Contains(w.Body.String(), "<") {
		t.Errorf("an unknown path of the API is answered with a page: %d", w.Code)
	}
}

// Below a prefix all addresses have it.
func TestConsole_MountedBelowAPrefix(t *testing.T) {
	t.Parallel()
	h := http.StripPrefix("/admin/dlq", open(t, newArchive(plain)))
	for _, path := range paths {
		for _, n := range parse(t, ask(h, "GET", "/admin/dlq"+path).Body) {
			for _, key := range []string{"href", "src", "action", "hx-get"} {
				if to := attr(n, key); to != "" && !strings.HasPrefix(to, "/admin/dlq/") && !strings.HasPrefix(to, "#") {
					t.Errorf("%s: <%s %s=%q>", path, n.Data, key, to)
				}
			}
		}
	}
	for uri, want := range map[string]string{"/topics/x?a=/b": "", "//evil.example/topics/x": "", "http://evil.example/topics/x": "", "/a%22/topics/x": "/a%22", "/topics/x": "", "": ""} {
		r := httptest.NewRequest("GET", "/topics/x", nil)
		r.RequestURI = uri
		if got := baseOf(r); got != want {
			t.Errorf("%q is mounted at %q, want %q", uri, got, want)
		}
	}
}

// A form without a filter has a short address, with and without a script.
func TestConsole_AddressesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	c := open(t, newArchive(plain))
	const typed, want = "/topics/orders.dlq?state=&class=http.503&group=&since=6h", "/topics/orders.dlq?class=http.503&since=6h"
	if w := ask(c, "GET", typed); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
		t.Errorf("a browser is sent to %q with %d", w.Header().Get("Location"), w.Code)
	}
	if w := ask(c, "GET", typed, "HX-Request", "true"); w.Code != http.StatusOK || w.Header().Get("HX-Push-Url") != want {
		t.Errorf("htmx shows %q with %d", w.Header().Get("HX-Push-Url"), w.Code)
	}
}

// A filter with several classes stays as it is when its form is sent.
func TestConsole_FormsKeepTheFilter(t *testing.T) {
	t.Parallel()
	c := open(t, newArchive(plain))
	sent := map[string][]string{}
	for _, n := range parse(t, ask(c, "GET", "/topics/orders.dlq?class=a&class=b+c&group=billing&since=6h&fingerprint=f").Body) {
		if n.Data == "input" && attr(n, "value") != "" && attr(n, "name") != "back" {
			sent[attr(n, "name")] = append(sent[attr(n, "name")], attr(n, "value"))
		}
	}
	if got, want := fmt.Sprint(sent), "map[class:[a b c] fingerprint:[f] group:[billing] since:[6h]]"; got != want || len(sent["class"]) != 2 {
		t.Errorf("the form sends %s, want %s", got, want)
	}
}
