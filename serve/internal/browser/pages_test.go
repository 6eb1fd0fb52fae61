package browser

import (
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
)

// pages are those of the console: their name, their path, and a text that they show when they are
// whole.
var pages = []struct{ name, path, shows string }{
	{"overview", "/", openInAll},
	{"incident", "/topics/orders.dlq", "tax.TableMiss"},
	{"filtered", "/topics/orders.dlq?class=http.503&since=6h", "class: http.503"},
	{"discarded", "/topics/orders.dlq?state=discarded", "Letters: discarded"},
	{"no-match", "/topics/orders.dlq?class=nothing", "No open letter matches the filter."},
	{"settled", "/topics/mails.dlq", "No open letters."},
	{"letter", "/topics/orders.dlq/letters/0/60", "Dead-lettered"},
	{"discarded-letter", "/topics/orders.dlq/letters/1/0", "OPS-4711"},
	{"hex", "/topics/orders.dlq/letters/0/60?value=hex", "7b 22 6f 72"},
	{"plan", "/topics/orders.dlq/redrive?class=http.503", "Sends 90 letters"},
	{"letter-plan", "/topics/orders.dlq/letters/0/60/redrive", "Set headers"},
	{"discard", "/topics/orders.dlq/discard?class=http.503", "Discards 90 letters"},
	{"reopen", "/topics/orders.dlq/letters/1/0/reopen", "Withdraws that the letter was discarded"},
	{"runs", "/runs", "A run brings dead letters back"},
	{"rules", "/rules", "A rule brings letters back by itself"},
	{"audit", "/audit", "OPS-4711"},
}

// errors404 are pages that say that something is wrong, by their path.
var errors404 = map[string]string{"/nowhere": "There is no such page.", "/topics/other.dlq": "other.dlq", "/topics/orders.dlq/letters/0/99999": "no letter"}

// Each page is without findings of axe-core and without messages in the browser's console, and
// scrolls sideways nowhere: by day and by night, on a phone and on a screen.
func TestPages_AreAccessible(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	for _, p := range pages {
		tb.visit(s, p.path, p.shows)
		tb.checkAll(p.name)
	}
	tb.forgive(true)
	for path, text := range errors404 {
		tb.visit(s, path, text)
		tb.checkAll(path)
	}
}

// visit opens a page, and waits until it shows a text.
func (tb *tab) visit(s *server, path, text string) {
	tb.t.Helper()
	tb.open(s.at(path))
	if eval[bool](tb, fmt.Sprintf("document.querySelector('main').innerText.includes(%q)", text)) {
		return
	}
	// The server has not read it yet, and says so when it has.
	tb.reads("main", text)
}

// checkAll checks a page in both schemes and at both widths, with all its details open.
func (tb *tab) checkAll(name string) {
	tb.t.Helper()
	tb.run("document.querySelectorAll('details').forEach((d) => { d.open = true })")
	for _, scheme := range []string{"light", "dark"} {
		tb.scheme(scheme)
		for _, width := range []int64{360, 1280} {
			tb.size(width, 800)
			tb.check(fmt.Sprintf("%s, %s, %d px", name, scheme, width))
		}
	}
}

// Columns are narrow where names and messages are long. A number, a time or a short name is never
// broken there, and no page scrolls sideways.
func TestPages_NumbersStayWhole(t *testing.T) {
	i := newIncident(t)
	const long = "payments-settlement.reconciliation.eu-west-1"
	made, err := kadm.NewClient(i.cl).CreateTopics(t.Context(), 3, 1, nil, long, long+".dlq", long+".dlq.ledger")
	if err == nil {
		err = made.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	classes := []string{"", "decode", "io.github.company.payments.SettlementMismatchException", "java.util.concurrent.TimeoutException"}
	for n := range 1100 {
		i.letter(long, classes[n%len(classes)], "batch 4711 does not match: expected 1,203,441.22 EUR, got 1,203,441.20 EUR", "2026.11.27-rc.1+build.20261127.4711", time.Now().Add(-time.Duration(n)*time.Minute))
	}
	ledger := dlq.NewLedger(long+".dlq", long+".dlq.ledger", i.kafka...)
	if _, err := ledger.Discard(t.Context(), dlq.Filter{Classes: []string{"decode"}}, dlq.Cursor{}, dlq.DiscardOptions{
		By: "maria.gonzalez-hernandez@company.example.com", Why: "duplicates of the night: https://wiki.company.example.com/incidents/2026/11/27/settlement-mismatch",
	}); err != nil {
		t.Fatal(err)
	}
	s := i.serve(serve.Config{RulesFile: ruleFile(t)})
	tb := newTab(t)
	for _, p := range []struct{ path, shows string }{
		{"/", "1,179 open"}, {"/topics/" + long + ".dlq", "825 open"}, {"/topics/" + long + ".dlq/letters/1/20", "Dead-lettered"}, {"/audit", "duplicates of the night"}, {"/rules", "an outage is over"},
	} {
		tb.visit(s, p.path, p.shows)
		for _, width := range []int64{360, 960, 1280, 1920} {
			tb.size(width, 800)
			tb.check(fmt.Sprintf("%s, %d px", p.path, width))
			for _, broken := range eval[[]string](tb, `Array.from(document.querySelectorAll('td.n, time, .rows a.open')).filter((e) => {
				const lines = document.createRange()
				lines.selectNodeContents(e)
				return e.innerText.length <= 24 && new Set(Array.from(lines.getClientRects(), (r) => Math.round(r.top))).size > 1
			}).map((e) => e.outerHTML.slice(0, 120))`) {
				t.Errorf("%s, %d px: %s is broken", p.path, width, broken)
			}
		}
	}
}

// tokenFile writes a file of tokens of people with a role: "of " and the name.
func tokenFile(t *testing.T, role string, names ...string) string {
	t.Helper()
	text := "tokens:\n"
	for _, name := range names {
		text += fmt.Sprintf("  - {name: %s, sha256: %x, grants: [{role: %s}]}\n", name, sha256.Sum256([]byte("of "+name)), role)
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Whoever has to sign in gets the page that was asked for then, and what goes wrong is said.
func TestPages_SignIn(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, "viewer", "anna")}})
	tb := newTab(t)
	tb.forgive(true) // the status 401 is an error to the browser
	tb.visit(s, "/audit", "Sign in")
	tb.checkAll("sign-in")
	tb.do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong\r"))
	tb.reads("main", "nobody has this token")
	tb.checkAll("sign-in, refused")
	tb.forgive(false)
	tb.do(chromedp.SendKeys(chromedp.CSS("#token"), "of anna\r"))
	tb.reads(".who", "anna")
	tb.at("/audit")
	// What a viewer may not see is said, and who could change that.
	tb.visit(s, "/topics/orders.dlq/letters/1/0", "for the role reader")
	tb.checkAll("letter, as a viewer")
	tb.do(chromedp.Click("//button[text()='Sign out']"))
	tb.reads("main", "Sign in")
}

// Two servers behind one address, as the chart has them by default, have one key of sessions. A
// page, its styles, its stream and its forms may each come from another server, and all know who
// signed in.
func TestPages_ASessionHoldsOnBothServers(t *testing.T) {
	i := newIncident(t)
	tokens, key := tokenFile(t, "operator", "anna"), filepath.Join(t.TempDir(), "session.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	var both [2]*server
	for n := range both {
		both[n] = i.serve(serve.Config{Access: serve.Access{TokensFile: tokens, SessionKeyFile: key}})
	}
	var asked atomic.Int64
	one := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", both[asked.Add(1)%2].cfg.Listen
	}})
	t.Cleanup(one.Close)
	front := &server{i: i, cfg: serve.Config{Listen: one.Listener.Addr().String()}}
	tb := newTab(t)
	tb.forgive(true) // the status 401 is an error to the browser
	tb.visit(front, "/audit", "Sign in")
	tb.forgive(false)
	tb.do(chromedp.SendKeys(chromedp.CSS("#token"), "of anna\r"))
	tb.reads(".who", "anna")
	for range 4 {
		for _, path := range []string{"/topics/orders.dlq", "/runs", "/audit"} {
			tb.open(front.at(path))
			tb.reads(".who", "anna")
		}
	}
	tb.do(chromedp.Click("//button[text()='Sign out']"))
	tb.reads("main", "Sign in")
}

// Pages show the same without a script, and their filter works.
func TestPages_NeedNoScript(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	whole := newTab(t)
	whole.visit(s, "/", openInAll) // it has read all
	tb := newTab(t)
	tb.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	for _, p := range pages {
		tb.visit(s, p.path, p.shows)
	}
	tb.visit(s, "/topics/orders.dlq", "tax.TableMiss")
	tb.do(chromedp.Click(chromedp.CSS("#filter-name")), chromedp.SendKeys(chromedp.CSS("#f-class"), "http.*\r"))
	tb.at("/topics/orders.dlq?class=http.*")
	tb.reads("main", "class: http.*")
}
