package browser

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

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
	// The server has not read it yet, and tells when it has.
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

// Whoever has to sign in gets the page that was asked for then, and what goes wrong is said.
func TestPages_SignIn(t *testing.T) {
	i := newIncident(t)
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	text := fmt.Sprintf("tokens:\n  - {name: anna, sha256: %x, grants: [{role: viewer}]}\n", sha256.Sum256([]byte("secret")))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := i.serve(serve.Config{Access: serve.Access{TokensFile: file}})
	tb := newTab(t)
	tb.forgive(true) // the status 401 is an error to the browser
	tb.visit(s, "/audit", "Sign in")
	tb.checkAll("sign-in")
	tb.do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong\r"))
	tb.reads("main", "nobody has this token")
	tb.checkAll("sign-in, refused")
	tb.forgive(false)
	tb.do(chromedp.SendKeys(chromedp.CSS("#token"), "secret\r"))
	tb.reads(".who", "anna")
	tb.at("/audit")
	// What a viewer may not see is said, and who could change that.
	tb.visit(s, "/topics/orders.dlq/letters/1/0", "for the role reader")
	tb.checkAll("letter, as a viewer")
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
