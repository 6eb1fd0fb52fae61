package serve_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// cells returns the texts of a page's rows by the names of their columns. A row's heading has none.
func cells(t *testing.T, body string) (rows []map[string]string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	textOf := func(n *html.Node) string {
		var b strings.Builder
		for d := range n.Descendants() {
			if d.Type == html.TextNode {
				b.WriteString(d.Data + " ")
			}
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	for n := range root.Descendants() {
		if n.Data != "tr" || !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-row" }) {
			continue
		}
		row := map[string]string{}
		for c := range n.ChildNodes() {
			if c.Type == html.ElementNode {
				name := attribute(c, "data-name")
				if class := attribute(c, "class"); class == "sample" || class == "said" {
					name = class
				}
				row[name] = textOf(c)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// A group of letters says which versions of which services failed so, for the first and for the
// last time, with a sample; each letter says its own.
func TestServer_ConsoleIncidentSaysWhichVersionFails(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "bills", "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	opens(t, cl, "bills.dlq", 0)
	now := time.Now()
	for i, m := range []headers.Meta{ // by offset
		{Group: "billing", Version: "1.4.2"}, {Group: "mail", Version: "9"}, {Group: "billing", Version: "1.4.3"}, {Group: "billing", Version: "1.4.3"},
	} {
		m.Class, m.Fingerprint, m.Reason, m.Host = "tax.TableMiss", "00000000000000f1", headers.ReasonTerminal, "pod-7"
		m.FailedAt = now.Add(time.Duration(i-5) * time.Hour)
		m.FirstFailedAt = m.FailedAt
		c.placed(m, now, "{}")
	}
	opens(t, cl, "orders.dlq", 4)
	topics, err := cl.Topics(t.Context())
	if err != nil || len(topics) != 2 || topics[0].Topic != "orders.dlq" || topics[0].TopClass != "tax.TableMiss" || topics[0].Oldest == nil || topics[1].Oldest != nil {
		t.Errorf("the topics are %+v, %v", topics, err)
	}
	groups, err := cl.Groups(t.Context(), "orders.dlq", api.Filter{})
	if err != nil || len(groups) != 1 {
		t.Fatalf("the groups are %+v, %v", groups, err)
	}
	if g := groups[0]; !g.New || g.Open != 4 || !slices.Equal(g.Groups, []string{"billing", "mail"}) || !slices.Equal(g.Versions, []string{"1.4.2", "1.4.3", "9"}) || now.Sub(g.First).Round(time.Minute) != 5*time.Hour || now.Sub(g.Last).Round(time.Minute) != 2*time.Hour {
		t.Errorf("the group is %+v", g)
	}
	rows := cells(t, get(t, s, "/topics/orders.dlq"))
	if len(rows) != 5 {
		t.Fatalf("the rows are %q", rows)
	}
	if g := rows[0]; g["open"] != "4" || g["first"] != "5 h ago" || g["last"] != "2 h ago" || g["group"] != "billing mail" || g["version"] != "1.4.2 1.4.3 9" || g["sample"] != "it failed" {
		t.Errorf("the group's row is %q", g)
	}
	// the newest first
	for i, want := range []string{"billing 1.4.3", "billing 1.4.3", "mail 9", "billing 1.4.2"} {
		if l := rows[1+i]; l["group"]+" "+l["version"] != want {
			t.Errorf("letter %d is %q, want %s", i, l, want)
		}
	}
	words(t, s, "/topics/orders.dlq", "First at", now.Add(-5*time.Hour).UTC().Format("15:04:05 UTC"), "by pod-7, release 1.4.2", "first failure of 1.4.3")
	words(t, s, "/topics/orders.dlq/letters/0/0", "group billing · host pod-7 · version 1.4.2")
}

// The list says what each letter said, with its key and its attempts, to those who may read keys. A
// key that the configuration hides stays hidden. What all have in common is said once.
func TestServer_ConsoleListSaysWhatLettersSay(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{Redact: serve.Redact{Patterns: []string{"hunter[0-9]+"}}, Access: serve.Access{TokensFile: tokenFile(t, map[string]string{"viewer": "[{role: viewer}]", "reader": "[{role: reader}]"})}})
	now := time.Now()
	for i, message := range []string{"no rate for N1", "no rate for hunter2"} {
		m := headers.Meta{Group: "billing", Version: "1.4.2", Class: "tax.TableMiss", Fingerprint: "00000000000000f1", Reason: headers.ReasonTerminal, Message: message, Attempts: i + 1, FailedAt: now}
		m.FirstFailedAt = now
		c.placed(m, now, "{}")
	}
	opens(t, c.clientOf(s, "reader"), "orders.dlq", 2)
	for _, role := range []string{"reader", "viewer"} {
		r := httptest.NewRequest(http.MethodGet, "/topics/orders.dlq", nil)
		r.Header.Set("Authorization", "Bearer "+role)
		w, text := visit(t, s, r)
		rows := cells(t, w.Body.String())
		if len(rows) != 3 {
			t.Fatalf("the rows of a %s are %q", role, rows)
		}
		if has := strings.Contains(text, "key none"); has != (role == "reader") {
			t.Errorf("a %s sees keys: %v", role, has)
		}
		for i, want := range []string{"no rate for [redacted] 2", "no rate for N1 1"} {
			l := rows[1+i]
			if got := l["said"] + " " + l["attempts"]; got != want {
				t.Errorf("letter %d of a %s says %q, want %q", i, role, got, want)
			}
			if _, has := l["class"]; has {
				t.Errorf("the one class has a column: %q", l)
			}
		}
	}
}

// Each topic of the overview has its failures of the last six hours as bars: what grows ends high.
func TestServer_ConsoleOverviewShowsGrowth(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 4)
		now := time.Now()
		for hours, n := range map[int]int{1: 2, 5: 1, 7: 8} { // the last ones are too old
			for range n {
				is.letter(now.Add(-time.Duration(hours) * time.Hour))
			}
		}
		is.serve(serve.Config{})
		is.within(time.Minute, "the letters are known", func() bool {
			all := ask[[]api.Topic](is, "/topics")
			return len(all) == 1 && all[0].Open == 15
		})
		_, body := visit(t, is.Server, httptest.NewRequest(http.MethodGet, "/", nil))
		if !strings.Contains(body, "15 open in 1 topic · 1 growing") {
			t.Errorf("the overview says %s", body)
		}
		root, err := html.Parse(strings.NewReader(get(t, is.Server, "/")))
		if err != nil {
			t.Fatal(err)
		}
		var heights []string
		for n := range root.Descendants() {
			switch {
			case n.Data == "svg" && attribute(n, "class") == "spark":
				if title := attribute(n, "aria-label"); title != "7 failures in the last 6 h" {
					t.Errorf("the bars are called %q", title)
				}
			case n.Data == "rect" && n.Parent != nil && attribute(n.Parent, "class") == "spark":
				heights = append(heights, attribute(n, "height"))
			}
		}
		want := slices.Repeat([]string{"1"}, 24) // one for each quarter of an hour
		want[23], want[19], want[3] = "20", "10", "5"
		if fmt.Sprint(heights) != fmt.Sprint(want) {
			t.Errorf("the bars are %v high, want %v", heights, want)
		}
	})
}
