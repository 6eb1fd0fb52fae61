package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve/internal/access"
)

// tame returns a text of the same length without a character that means something in HTML.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return r
		}
		return 'x'
	}, text)
}

// Whatever records, failures and people say, a page has the elements and the attributes that it has
// when they say nothing special, at the same places: nothing of it is HTML. No address leads out of
// the server.
func FuzzConsole(f *testing.F) {
	cases.Skip(f)
	for _, text := range []string{
		"tax.TableMiss", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "' onmouseover='x", "javascript:alert(1)", "{{.}}", "</title></style></textarea>", "\x00\xff<b", "]]><!--", "`${x}`",
		"</svg><svg onload=x>", "&lt;b&gt;&#60;", "\u202e<b>", "a\rb\n\ndata: x", "//evil.example", `{"a":"<b>"}`, "http://[",
	} {
		f.Add(text, text, text, text)
	}
	console := open(f)
	f.Fuzz(func(t *testing.T, class, message, value, name string) {
		for _, s := range []string{class, message, value, name} {
			if !utf8.ValidString(s) || len(s) > 2000 {
				t.Skip("the API has valid text only")
			}
			if strings.TrimSpace(s) == "" {
				t.Skip("what is missing has other words")
			}
		}
		// JSON strings are JSON again when they are tame.
		quoted, err := json.Marshal(value)
		if err != nil {
			t.Skip()
		}
		wild := newSpecimen(texts{class, message, string(quoted), name})
		calm, err := json.Marshal(tame(value))
		if err != nil {
			t.Fatal(err)
		}
		harmless := newSpecimen(texts{tame(class), tame(message), string(calm), tame(name)})
		wild.held, harmless.held = true, true
		for _, role := range []access.Role{access.Viewer, access.Operator} {
			wild.role, harmless.role = role, role
			a, b := http.Handler(wild), http.Handler(harmless)
			for _, path := range append(paths, "/topics/orders.dlq/letters/1/5?value=json") {
				compare(t, path, path, a, b)
			}
			filter := func(s string) string {
				return "/topics/orders.dlq?" + url.Values{"class": {s}, "group": {s}}.Encode()
			}
			compare(t, filter(class), filter(tame(class)), a, b)
			by := func(s string) string { return "/audit?" + url.Values{"by": {s}}.Encode() }
			compare(t, by(name), by(tame(name)), a, b)
			if run := func(s string) string { return "/topics/orders.dlq/runs/" + url.PathEscape(s) }; !strings.HasPrefix(name, ".") {
				compare(t, run(name), run(tame(name)), a, b)
				rule := func(s string) string { return "/rules/" + url.PathEscape(s) + "/topics/orders.dlq" }
				compare(t, rule(name), rule(tame(name)), a, b)
			}
			compare(t, "/sign-in?back="+url.QueryEscape(name), "/sign-in?back="+url.QueryEscape(tame(name)), console, console)
		}
	})
}

func compare(t *testing.T, wildPath, path string, wild, harmless http.Handler) {
	t.Helper()
	page := ask(wild, wildPath)
	got, want := parse(t, page.Body), parse(t, ask(harmless, path).Body)
	if a, b := shape(got), shape(want); !slices.Equal(a, b) {
		for i := range a {
			if i >= len(b) || a[i] != b[i] {
				t.Fatalf("%s: element %d is %s", wildPath, i, a[i])
			}
		}
		t.Fatalf("%s has %d elements, and %d without special characters", wildPath, len(a), len(b))
	}
	for _, n := range got {
		for _, key := range []string{"href", "src", "action"} {
			if to := attr(n, key); to != "" && !isRunbook(n) && !strings.HasPrefix(to, "#") && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
				t.Fatalf("%s: <%s %s=%q> leads out of the server", wildPath, n.Data, key, to)
			}
		}
	}
}
