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

// No page needs a style or a script within itself, and each answer forbids them.
func TestConsole_PagesKeepTheirPolicy(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, path := range []string{"/", "/runs", "/audit", "/sign-in", "/nowhere", "/static/console.css"} {
		w := ask(c, path)
		for key, want := range map[string]string{"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff"} {
			if got := w.Header().Get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", path, key, got, want)
			}
		}
		if cached := w.Header().Get("Cache-Control"); (cached == "no-store") != (path != "/static/console.css") {
			t.Errorf("%s: Cache-Control is %q", path, cached)
		}
	}
	for _, path := range paths {
		for _, n := range parse(t, ask(newSpecimen(plain), path).Body) {
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
	empty, settled := newSpecimen(plain), newSpecimen(plain)
	empty.empty, settled.settled, settled.held = true, true, true
	for name, data := range map[string]*specimen{"full": newSpecimen(plain), "empty": empty, "settled": settled} {
		for _, path := range paths {
			all := parse(t, ask(data, path).Body)
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
				case "h1", "h2", "h3", "h4":
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

// Each page says first how things are, and does not guess what is not known.
func TestConsole_PagesSayHowThingsAre(t *testing.T) {
	t.Parallel()
	c := newSpecimen(plain)
	has(t, "the overview", look(t, c, "/"), "2,114 open in 1 topic · 1 growing · 1 beyond a threshold", "orders.dlq high", "oldest 4 h ago", "page 2,114 letters open", "tax.TableMiss")
	has(t, "the incident", look(t, c, "/topics/orders.dlq"),
		"2,114 open · 3 redriven, outcome pending · growing, 31 in the last 5 min · oldest 4 h ago · retention takes the first in 8 d",
		"tax.TableMiss NEW 2 fingerprints 1,902", "tax.TableMiss billing", "1,900", `no rate for region "N?"`, "1,902", "20 s ago", "http.503 QUIET", "no class FAILED AGAIN", "unknown", "sending · 5 of 9 sent", "Older letters")
	has(t, "a filter", look(t, c, "/topics/orders.dlq?class=x"), "2,114 selected · 2,114 open")
	has(t, "the letter", look(t, c, "/topics/orders.dlq/letters/1/5"),
		"failed again after it was brought back", "Produced 2 h ago", "Brought back", "1 earlier attempt", "no longer in the history", "Attempt 2 tax.TableMiss", "5 s later Attempt 3, call 1",
		"Dead-lettered", "its attempts were used up · after 3 attempts", "by billing", "changed: headers and value", "Failed again", `"amount": 12345678901234567890`, "raw 2 bytes, hex", "null")
	has(t, "the audit", look(t, c, "/audit"), "8 decisions", "discarded", "began a run", "aborted", "no reason given")
	c.role = access.Viewer
	if text := look(t, c, "/topics/orders.dlq/letters/1/6"); strings.Contains(text, "amount") {
		t.Errorf("a viewer reads the value: %s", text)
	} else {
		has(t, "the letter of a viewer", text, "for the role reader on orders.dlq")
	}
	settled := newSpecimen(plain)
	settled.settled = true
	has(t, "the overview", look(t, settled, "/"), "all settled: no open letters in 1 topic")
	has(t, "the incident", look(t, settled, "/topics/orders.dlq"), "all settled", "No open letters. A record comes here when")
	has(t, "the audit", look(t, settled, "/audit"), "no decisions yet")
	settled.held = true
	has(t, "the overview", look(t, settled, "/"), "records held or strained in 1 topic", "held since 12 min ago by "+settled.name+" (3 of 3 partitions), 12,400 records wait, most failures are "+settled.class+" · 0 open")
	has(t, "the incident", look(t, settled, "/topics/orders.dlq"), "· 0 open", "While groups hold records of orders back")
	for _, path := range []string{"/", "/topics/orders.dlq"} {
		if text := look(t, settled, path); strings.Contains(text, "all settled") || strings.Contains(text, "quiet") {
			t.Errorf("%s: a topic that is held looks calm: %s", path, text)
		}
	}
	none := newSpecimen(plain)
	none.empty = true
	has(t, "the overview", look(t, none, "/"), "There is no dead-letter topic that local may see", "viewer")
}

// Below a prefix all addresses have it.
func TestConsole_MountedBelowAPrefix(t *testing.T) {
	t.Parallel()
	h := http.StripPrefix("/admin/dlq", newSpecimen(plain))
	for _, path := range paths {
		for _, n := range parse(t, ask(h, "/admin/dlq"+path).Body) {
			for _, key := range []string{"href", "src", "action", "hx-get"} {
				if to := attr(n, key); to != "" && !isRunbook(n) && !strings.HasPrefix(to, "/admin/dlq/") && !strings.HasPrefix(to, "#") {
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

// A filter with several classes stays as it is when its form is sent.
func TestConsole_FormsKeepTheFilter(t *testing.T) {
	t.Parallel()
	sent := map[string][]string{}
	for _, n := range parse(t, ask(newSpecimen(plain), "/topics/orders.dlq?class=a&class=b+c&group=billing&since=6h&fingerprint=f").Body) {
		if n.Data == "input" && attr(n, "value") != "" && attr(n, "name") != "back" {
			sent[attr(n, "name")] = append(sent[attr(n, "name")], attr(n, "value"))
		}
	}
	if got, want := fmt.Sprint(sent), "map[class:[a b c] fingerprint:[f] group:[billing] since:[6h]]"; got != want || len(sent["class"]) != 2 {
		t.Errorf("the form sends %s, want %s", got, want)
	}
}

// A poll that knows the page gets no page.
func TestConsole_PollsGetWhatIsNew(t *testing.T) {
	t.Parallel()
	c := open(t)
	var page, runs string
	for _, n := range parse(t, ask(c, "/audit").Body) {
		switch attr(n, "id") {
		case "live":
			page = attr(n, "data-seen")
		case "runs":
			runs = attr(n, "data-seen")
		}
	}
	seen := page + "." + runs
	if w := ask(c, "/audit", "X-Poll", "1", "If-None-Match", `"`+seen+`"`); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("a poll without news: %d with %d bytes", w.Code, w.Body.Len())
	}
	if w := ask(c, "/audit", "X-Poll", "1", "If-None-Match", `"old"`); w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Errorf("a poll with news: %d with %d bytes", w.Code, w.Body.Len())
	}
}
