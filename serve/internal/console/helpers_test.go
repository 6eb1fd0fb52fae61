package console

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/book"
	"github.com/sidingkafka/siding/serve/internal/incident"
)

// texts are what records and people can put into pages.
type texts struct{ class, message, value, name string }

// archive is data of one topic, orders.dlq, with one letter of each kind.
type archive struct {
	texts
	deeds
	role    access.Role
	empty   bool      // there is no topic
	settled bool      // nothing is open
	held    bool      // its source is
	clear   bool      // nothing is hidden
	busy    bool      // somebody sends too many requests
	deaf    time.Time // the brokers have not answered since
	hidden  string
	version atomic.Uint64
	// asked counts the questions for letters, each of which is a rendering of the incident.
	asked atomic.Int64
}

func newArchive(t texts) *archive { return &archive{texts: t, role: access.Reader} }

func ptr[T any](v T) *T { return &v }

// past is a time shortly before now, so that ages are whole.
func past() time.Time { return time.Now().Add(-500 * time.Millisecond) }

func (a *archive) topic() Topic {
	now := past()
	t := Topic{
		Topic: api.Topic{
			Topic: "orders.dlq", Source: "orders", Criticality: "high", Known: &now, Open: 2114, Pending: 3, Resolved: 7, Recent: 31,
			Oldest: ptr(now.Add(-4 * time.Hour)), Newest: ptr(now.Add(-20 * time.Second)), TopClass: a.class, Problem: a.message,
		},
		Role: a.role, Retention: 9 * 24 * time.Hour,
		Alerts: []incident.Alert{{Severity: incident.Warn, Text: "the first letters of " + a.class}, {Severity: incident.Page, Text: "2,114 letters open"}},
		Runs: []redrive.Outcome{
			{ID: a.name, By: a.name, Why: a.message, State: redrive.Sending, Waiting: a.message, Started: now.Add(-time.Minute), Counts: redrive.Counts{Selected: 9, Sent: 5, Failed: 1, Pending: 2}},
			{ID: "r0", By: "ada", Why: "", State: redrive.Aborted, Cause: a.message, Started: now.Add(-time.Hour), Resumed: []redrive.Resumption{{At: now.Add(-50 * time.Minute), Owner: "ben on pod-2, process 1"}}},
		},
	}
	if a.held {
		t.Guards = []api.Guard{{Group: a.name, State: "held", Since: now.Add(-12 * time.Minute), Class: a.class, Partitions: 3, Of: 3, Waiting: ptr(int64(12_400))}}
	}
	if a.settled {
		t.Open, t.Pending, t.Recent, t.Oldest, t.Newest, t.TopClass, t.Problem, t.Alerts, t.Runs = 0, 0, 0, nil, nil, "", "", nil, nil
	}
	return t
}

func (a *archive) Roles(*access.Identity) map[string]access.Role {
	if a.empty {
		return nil
	}
	return map[string]access.Role{"orders.dlq": a.role}
}

func (a *archive) Topics(context.Context, *access.Identity) []Topic {
	if a.empty {
		return nil
	}
	return []Topic{a.topic()}
}

func (a *archive) Topic(_ context.Context, _ *access.Identity, name string) (*Topic, error) {
	if name != "orders.dlq" || a.empty {
		return nil, &pageError{http.StatusNotFound, "there is no dead-letter topic " + name}
	}
	t := a.topic()
	return &t, nil
}

func (a *archive) Groups(context.Context, *access.Identity, string, *Filter) ([]api.Group, error) {
	if a.settled {
		return nil, nil
	}
	now := past()
	return []api.Group{
		{Class: a.class, Fingerprint: a.name, Open: 1902, First: now.Add(-4 * time.Hour), Last: now.Add(-20 * time.Second), New: true, Groups: []string{a.name}, Versions: []string{a.name}, Reasons: []string{"terminal"}, Sample: a.message, Partition: 1, Offset: 5},
		{Class: "http.503", Open: 188, First: now.Add(-3 * time.Hour), Last: now.Add(-2 * time.Hour)},
		{Class: "", Open: 24, First: now.Add(-9 * 24 * time.Hour), Last: now.Add(-9 * 24 * time.Hour), FailedAgain: 3, Groups: []string{"billing"}},
	}, nil
}

func (a *archive) Letters(_ context.Context, _ *access.Identity, _ string, f *Filter, n int) (*api.Letters, error) {
	a.asked.Add(1)
	if a.settled {
		return &api.Letters{}, nil
	}
	page := &api.Letters{Next: "v1/orders.dlq/0:7"}
	for i := range int64(3) {
		page.Letters = append(page.Letters, api.Letter{Partition: 1, Offset: i, FailedAt: time.Now(), EnteredAt: time.Now(), Class: a.class, Fingerprint: a.name, Reason: a.name, Group: a.name, Version: a.name, State: f.State})
	}
	return page, nil
}

func (a *archive) Letter(_ context.Context, _ *access.Identity, topic string, partition int32, offset int64) (*api.LetterDetail, error) {
	if offset == 404 {
		return nil, &pageError{http.StatusNotFound, "there is no letter: it expired, or never existed"}
	}
	now := past()
	l := &api.LetterDetail{
		Letter:  api.Letter{Partition: partition, Offset: offset, State: "failed", FailedAt: now.Add(-time.Hour), EnteredAt: now.Add(-time.Hour), Class: a.class, Fingerprint: a.name, Reason: "exhausted", Group: a.name, Version: a.name},
		Message: a.message, Stack: a.message, Attempts: 3, Original: api.Position{Topic: "orders", Partition: 1, Offset: 77}, ProducedAt: ptr(now.Add(-2 * time.Hour)),
		Redriven: &api.Redriven{Run: a.name, Count: 2, From: api.Position{Topic: topic, Partition: 1, Offset: 2}, At: ptr(now.Add(-100 * time.Minute))},
		History: []api.Attempt{
			{Number: 2, Class: a.class, At: now.Add(-90 * time.Minute), Verdict: "retry", Message: a.message},
			{Number: 3, Call: 1, Class: a.class, At: now.Add(-90*time.Minute + 5*time.Second), Verdict: a.name, Message: a.message},
		},
		Ledger: []api.LedgerEntry{
			{State: string(dlq.Redriven), At: now.Add(-30 * time.Minute), By: a.name, Why: a.message, Run: a.name, Target: &api.Position{Topic: a.name}, Edited: []string{"headers", "value"}},
			{State: string(dlq.Failed), At: now.Add(-20 * time.Minute), Run: a.name, Class: a.class},
		},
		TraceParent: a.name, Redacted: !a.clear,
	}
	l.State = map[int64]string{6: "", 7: "discarded"}[offset]
	if offset != 6 && offset != 7 {
		l.State = "failed"
	}
	if a.role >= access.Reader {
		l.Content = &api.Content{
			Key: api.Bytes{Text: ptr(a.name), Size: len(a.name)}, Value: api.Bytes{Text: ptr(a.value), Size: len(a.value)},
			Headers: []api.Header{{Key: a.name, Value: api.Bytes{Text: ptr(a.value), Size: len(a.value)}}, {Key: "raw", Value: api.Bytes{Base64: []byte{0xff, 0}, Size: 2}}, {Key: "null"}},
		}
	}
	return l, nil
}

func (a *archive) Times(_ context.Context, _ *access.Identity, _ string, _ *Filter, _ time.Time, _ time.Duration, n, most int) ([]book.Series, error) {
	if a.settled {
		return nil, nil
	}
	var all []book.Series
	for i := range most + 1 {
		s := book.Series{Class: a.class, Counts: make([]int64, n)}
		s.Counts[i%n], s.Counts[n-1] = int64(100*(i+1)), int64(i)
		all = append(all, s)
	}
	return all, nil
}

func (a *archive) Acts(context.Context, *access.Identity, string) ([]book.Act, error) {
	if a.settled {
		return nil, nil
	}
	return []book.Act{{State: dlq.Discarded, By: a.name, Why: a.message, First: time.Now(), Last: time.Now(), Letters: 12}}, nil
}

func (a *archive) Enter(_ http.ResponseWriter, r *http.Request, _ *access.Identity, length access.Length) (context.Context, func(), error) {
	if a.busy {
		return nil, nil, &pageError{http.StatusTooManyRequests, "You send too many requests."}
	}
	if length == access.Live {
		return r.Context(), func() {}, nil
	}
	ctx, end := context.WithTimeout(r.Context(), time.Minute)
	return ctx, end, nil
}

func (a *archive) Prunes(context.Context, *access.Identity, string) ([]dlq.PruneRecord, error) {
	if a.settled {
		return nil, nil
	}
	return []dlq.PruneRecord{
		{At: past(), By: a.name, Why: a.message, Archive: a.name, Letters: 9, Open: 2, Discarded: 3, Error: a.message}, {At: past(), Letters: 1, Deleted: past()},
	}, nil
}

func (a *archive) RuleActs(context.Context, *access.Identity, string) ([]RuleAct, error) {
	if a.settled {
		return nil, nil
	}
	return []RuleAct{{Rule: a.name, Paused: true, By: a.name, Why: a.message, At: past()}, {Rule: a.name, By: a.name, At: past()}}, nil
}

func (a *archive) Hide(text string) string {
	if a.hidden == "" {
		return text
	}
	return strings.ReplaceAll(text, a.hidden, "[redacted]")
}

func (a *archive) SilentSince() time.Time                    { return a.deaf }
func (a *archive) Version(string) uint64                     { return a.version.Load() }
func (a *archive) LetterVersion(string, int32, int64) uint64 { return a.version.Load() }

// open returns a console over data, without access control.
func open(t testing.TB, data *archive) *Console {
	t.Helper()
	who, err := access.New(nil, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b, err := access.NewBrowser(who, nil, "http://127.0.0.1:8642", "")
	if err != nil {
		t.Fatal(err)
	}
	c := New(data, data, b, slog.New(slog.DiscardHandler))
	t.Cleanup(c.End)
	return c
}

// ask returns what a console answers to a request.
func ask(c http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// paths are all pages, each with several filters.
var paths = []string{
	"/", "/topics/orders.dlq", "/topics/orders.dlq?class=http.503&since=6h&state=failed", "/topics/orders.dlq?cursor=x&group=billing&fingerprint=f&reason=terminal&until=1h",
	"/topics/orders.dlq/letters/1/5", "/topics/orders.dlq/letters/1/5?value=text", "/topics/orders.dlq/letters/1/5?value=hex", "/topics/orders.dlq/letters/1/404",
	"/topics/orders.dlq/redrive", "/topics/orders.dlq/redrive?class=http.503&rate=x", "/topics/orders.dlq/letters/1/5/redrive", "/topics/orders.dlq/discard", "/topics/orders.dlq/discard?class=http.503&since=1h", "/topics/orders.dlq/letters/1/6", "/topics/orders.dlq/letters/1/7", "/topics/orders.dlq/letters/1/6/discard",
	"/topics/orders.dlq/letters/1/7/reopen", "/rules", "/rules/an%20outage/topics/orders.dlq", "/rules/none/topics/orders.dlq", "/runs", "/topics/orders.dlq/runs/r0", "/topics/orders.dlq/runs/billing", "/topics/orders.dlq/runs/none", "/audit", "/audit?topic=orders.dlq&by=ada", "/sign-in", "/nowhere", "/topics/other.dlq", "/topics/orders.dlq?since=yesterday", "/topics/orders.dlq/letters/x/y",
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
