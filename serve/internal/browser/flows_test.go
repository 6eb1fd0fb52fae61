package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sidingkafka/siding/serve"
)

// When an outage is over its letters come back: found, planned, confirmed, watched until they are
// done. The page of the topic and the audit say so.
func TestFlows_LettersComeBack(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq", openOrders)
	tb.do(chromedp.Click("//ul[@class='legend']//a[text()='http.503']"))
	tb.at("/topics/orders.dlq?class=http.503")
	i.repair()
	tb.plan(90)
	tb.checkAll("plan")
	tb.fill("#o-rate", "200")
	tb.fill("#o-ramp", "none")
	tb.fill("#o-window", "1s")
	tb.click("Plan again")
	tb.reads("#main", "Sends 90 letters to orders.retry.1s at 200/s")
	tb.confirm("Send 90 letters", "the payments are up again")
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#live", "90 succeeded")
	tb.reads("#live", "done")
	tb.checkAll("run that is done")
	tb.visit(s, "/runs", "the payments are up again")
	tb.checkAll("runs")
	tb.visit(s, "/topics/orders.dlq", "260 open")
	tb.visit(s, "/audit?topic=orders.dlq", "the payments are up again")
}

// Whoever goes back from a run sees the plan that it came from, with what was typed, and sends
// nothing twice. Forward is the run, which is followed again.
func TestFlows_BackAndForward(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	i.repair()
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq", openOrders)
	tb.do(chromedp.Click("//ul[@class='legend']//a[text()='http.503']"))
	tb.at("/topics/orders.dlq?class=http.503")
	tb.plan(90)
	tb.fill("#o-rate", "200")
	tb.fill("#o-window", "1s")
	tb.click("Plan again")
	tb.reads("#main", "Sends 90 letters to orders.retry.1s at 200/s")
	tb.confirm("Send 90 letters", "the payments are up again")
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#live", "90 succeeded")
	tb.reads("#live", "done") // else the plan is refused, as a run goes on
	tb.forgive(true)          // a plan of nothing is answered by 409
	tb.leave("history.back()")
	tb.at("/topics/orders.dlq/redrive?class=http.503&rate=200")
	tb.reads("#main", "no open letter fits")
	tb.sees("document.querySelector('#o-rate').value === '200'")
	tb.sees("!Array.from(document.querySelectorAll('#main button')).some((b) => b.innerText.startsWith('Send'))")
	tb.leave("history.forward()")
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#main", "90 succeeded")
	tb.leave("history.go(-3)")
	tb.at("/topics/orders.dlq?class=http.503")
	tb.live()
	tb.reads("#main", "260 open")
	tb.visit(s, "/runs", "the payments are up again")
	tb.sees("Array.from(document.querySelectorAll('[data-name=succeeded]')).map((e) => e.innerText).join() === '90'")
}

// A run that fails again stops by itself, and its page says why, and what to do.
func TestFlows_ACanaryStopsTheRun(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq?class=tax.TableMiss", openOrders)
	tb.plan(240)
	tb.confirm("Send 240 letters", "")
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#live", "aborted")
	tb.reads("#live", "1 of 240 sent")
	tb.reads("#live", "239 not sent")
	tb.checkAll("run that was aborted")
	tb.follow("Plan a redrive")
	tb.at("/topics/orders.dlq/redrive")
}

// The button that aborts a run is on each page while the run goes on.
func TestFlows_AbortIsInReach(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	i.repair()
	tb := newTab(t)
	tb.visit(s, "/", openInAll)
	tb.begin(s, 240, "/topics/orders.dlq?class=tax.TableMiss", "1")
	tb.reads("#live", "1/s")
	tb.checkAll("run that goes on")
	for _, path := range []string{"/", "/audit", "/rules", "/topics/payments.dlq", "/topics/orders.dlq/letters/0/60", "/topics/orders.dlq/discard"} {
		tb.open(s.at(path))
		tb.sees("document.querySelector('#runs form button').innerText === 'Abort'")
	}
	tb.checkAll("page with a run")
	tb.abort()
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#live", "aborted")
	tb.reads("#live", "not sent")
	tb.sees("!document.querySelector('#live form button')")
}

// A run goes on although its server is restarted, and so does the page that follows it.
func TestFlows_RunOutlastsARestart(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	i.repair()
	tb := newTab(t)
	tb.visit(s, "/", openInAll)
	tb.begin(s, 90, "/topics/orders.dlq?class=http.503", "15")
	tb.reads("#live", "full")
	tb.live()
	tb.sees("/ [1-9][0-9]* of 90 sent/.test(' ' + document.querySelector('#live').innerText)")
	tb.run("window.loadedOnce = true")
	tb.forgive(true)
	s.stop()
	tb.reads("#status", "The connection is lost. The page tries again.")
	s.again()
	tb.reads("#live", "90 succeeded")
	tb.reads("#live", "done")
	if !eval[bool](tb, "window.loadedOnce === true") {
		t.Error("the page was loaded again")
	}
}

// The process of a run is gone. Its page says so, a user resumes it there, and its letters come
// home.
func TestFlows_RunWithoutAProcessIsResumed(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	i.repair()
	path := i.leaveRun("http.503", 3)
	tb := newTab(t)
	tb.visit(s, "/runs", "1 run without a process: resume or abort it")
	tb.checkAll("runs, one without a process")
	tb.visit(s, path, "no process owns it")
	tb.live()
	tb.checkAll("run without a process")
	tb.sees("document.querySelector('#main [id^=abort-]').innerText === 'Abort'")
	tb.run("window.loadedOnce = true")
	tb.click("Resume")
	tb.sees("!window.loadedOnce && document.readyState === 'complete'")
	tb.at(path)
	tb.reads("#live", "90 succeeded")
	tb.reads("#live", "done")
	tb.sees("!document.querySelector('#main [id^=resume-]')")
	tb.visit(s, "/topics/orders.dlq", "260 open")
	if n := len(i.handled); n != 90 {
		t.Errorf("the service handled %d records, want 90, each once", n)
	}
}

// What a user changes in a letter is shown as a diff, and is what the service gets.
func TestFlows_LetterWithAnEdit(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	const path = "/topics/orders.dlq/letters/0/60"
	tb.visit(s, "/", openInAll)
	tb.visit(s, path, "Dead-lettered")
	tb.follow("Redrive…")
	tb.at(path + "/redrive")
	i.repair()
	tb.fill("#e-set", "currency: EUR")
	tb.fill("#e-patch", `{"region":"NO"}`)
	tb.fill("#o-window", "1s")
	tb.click("Show what changes, and plan")
	tb.reads("#main", "What changes")
	tb.reads(".diff ins", "currency: EUR")
	tb.sees(`Array.from(document.querySelectorAll('.diff ins')).some((e) => e.innerText.includes('"region":"NO"') || e.innerText.includes('"region": "NO"'))`)
	tb.checkAll("diff")
	tb.confirm("Send 1 letter", "the region was missing")
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#live", "1 succeeded")
	tb.reads("#live", "done")
	r := <-i.handled
	currency := ""
	for _, h := range r.Headers {
		if h.Key == "currency" {
			currency = string(h.Value)
		}
	}
	if !strings.Contains(string(r.Value), `"region":"NO"`) || currency != "EUR" {
		t.Errorf("the service got %s with the currency %q", r.Value, currency)
	}
	tb.visit(s, path, "succeeded after it was brought back")
}

// Letters are discarded by a user who types how many they are, and why; one is reopened.
func TestFlows_DiscardAndReopen(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq?class=decode", openOrders)
	tb.follow("Discard…")
	tb.at("/topics/orders.dlq/discard?class=decode")
	tb.reads("#main", "Discards 20 letters")
	tb.checkAll("discard")
	tb.fill("#why", "test orders, too")
	tb.fill("#expect", "7")
	tb.forgive(true) // the status 409 is an error to the browser
	tb.click("Discard")
	tb.reads("[role=alert]", "20")
	tb.checkAll("discard, refused")
	tb.forgive(false)
	tb.run("document.querySelector('#expect').value = ''")
	tb.fill("#expect", "20")
	tb.click("Discard")
	tb.at("/audit?topic=orders.dlq")
	tb.reads("#main", "test orders, too")
	tb.visit(s, "/topics/orders.dlq", "330 open")
	tb.visit(s, "/topics/orders.dlq/letters/1/0", "OPS-4711")
	tb.follow("Reopen…")
	tb.reads("#main", "Withdraws that the letter was discarded")
	tb.fill("#why", "somebody waits for it after all")
	tb.click("Reopen")
	tb.at("/topics/orders.dlq/letters/1/0")
	tb.reads("#main", "somebody waits for it after all")
	tb.visit(s, "/topics/orders.dlq", "331 open")
}

// Two people who act on the same letters do not act twice: the second one gets a message, and sees
// the run of the first.
func TestFlows_TwoPeopleAtOnce(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, "operator", "anna", "ben")}})
	i.repair()
	const path = "/topics/orders.dlq/redrive?class=http.503&rate=1"
	people := map[string]*tab{}
	for _, name := range []string{"anna", "ben"} {
		tb := newTab(t)
		tb.forgive(true) // the status 401 is an error to the browser
		tb.visit(s, "/", "Sign in")
		tb.do(chromedp.SendKeys(chromedp.CSS("#token"), "of "+name+"\r"))
		tb.reads(".who", name)
		tb.reads("#live", openInAll)
		tb.open(s.at(path))
		tb.reads("#main", "Sends 90 letters")
		people[name] = tb
	}
	anna, ben := people["anna"], people["ben"]
	const top = "Math.round(document.querySelector('#main button').getBoundingClientRect().top)"
	before := eval[int](ben, top)
	anna.confirm("Send 90 letters", "the payments are up again")
	anna.at("/topics/orders.dlq/runs/")
	// What ben is about to click stays where it is.
	ben.reads("#runs", "of orders.dlq")
	ben.sees(fmt.Sprintf("%s === %d", top, before))
	ben.confirm("Send 90 letters", "I am sure that nobody did it")
	ben.reads("[role=alert]", "unfinished run")
	ben.reads("#runs", "of orders.dlq")
	ben.checkAll("plan, refused")
	// What ben sees he may end.
	ben.abort()
	ben.at("/topics/orders.dlq/runs/")
	anna.reads("#live", "aborted")
	for _, tb := range people {
		tb.reads("#live", "the payments are up again")
		tb.reads("#live", "By token anna")
	}
}

// rulePath is the page of the rule that ruleFile writes, on the topic that it fits.
const rulePath = "/rules/an outage is over/topics/orders.dlq"

// ruleFile writes a file with a rule that has nothing to do yet.
func ruleFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - name: an outage is over\n    topics: orders*.dlq\n    classes: [http.*]\n    cool-down: 20h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A user keeps a rule from acting, and lets it go on; its history has who and why.
func TestFlows_RuleIsPaused(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{RulesFile: ruleFile(t)})
	tb := newTab(t)
	tb.visit(s, "/", openInAll)
	tb.visit(s, "/rules", "an outage is over")
	tb.live()
	tb.checkAll("rules")
	tb.follow("orders.dlq")
	tb.at(rulePath)
	tb.reads("#main", "It would do nothing now: ")
	tb.checkAll("rule")
	tb.confirm("Pause it here", "we look at it first")
	tb.reads("#main", "paused by")
	tb.reads("#main", "we look at it first")
	tb.checkAll("rule that is paused")
	tb.visit(s, "/rules", "paused on 1 topic")
	tb.follow("orders.dlq")
	tb.confirm("Let it go on", "we have looked")
	tb.reads("#main", "we have looked")
	tb.sees("!document.querySelector('#main').innerText.includes('paused by')")
}

// An outage passes, and its letters come home without an operator. A bug stays: a rule tries one
// letter, and nothing more moves.
func TestFlows_RulesActByThemselves(t *testing.T) {
	i := newIncident(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	rules := func(name, class string) {
		text := fmt.Sprintf("rules:\n  - {name: %s, topics: orders*.dlq, classes: [%s], cool-down: 1s, rate: 200, window: 1s, wait: 1h, max-wait: 2h}\n", name, class)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules("bug", "tax.*")
	s := i.serve(serve.Config{RulesFile: file})
	tb := newTab(t)
	tb.visit(s, "/rules", "circuit open on 1 topic")
	tb.visit(s, "/runs", "rule bug")
	tb.reads("#live", "aborted")
	tb.sees("Array.from(document.querySelectorAll('[data-name=sent]')).map((e) => e.innerText).join() === '1'")
	tb.visit(s, "/topics/orders.dlq", openOrders)
	i.repair()
	tb.live()
	rules("outage", "http.*") // a file that changes is read again
	tb.reads("#live", "260 open")
	tb.visit(s, "/runs", "rule outage")
	tb.sees("Array.from(document.querySelectorAll('[data-name=succeeded]')).map((e) => e.innerText).join() === '90,0'")
	tb.visit(s, "/audit?topic=orders.dlq", "rule outage")
}

// follow clicks on the link with a text.
func (tb *tab) follow(text string) {
	tb.t.Helper()
	tb.do(chromedp.Click("//main//a[text()='" + text + "']"))
}

// click clicks on the button with a text.
func (tb *tab) click(text string) {
	tb.t.Helper()
	tb.do(chromedp.Click("//main//button[text()='" + text + "']"))
}

// fill types into a field that is empty.
func (tb *tab) fill(selector, text string) {
	tb.t.Helper()
	tb.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// plan goes from the page of a topic to a plan of so many letters.
func (tb *tab) plan(letters int) {
	tb.t.Helper()
	tb.follow("Plan a redrive…")
	tb.at("/topics/orders.dlq/redrive")
	tb.reads("#main", fmt.Sprintf("Sends %d letters to orders.retry.1s", letters))
}

// confirm gives a reason, types the number where it is asked for, and clicks on a button.
func (tb *tab) confirm(button, why string) {
	tb.t.Helper()
	if why != "" {
		tb.fill("#why", why)
	}
	if eval[bool](tb, "Boolean(document.querySelector('#expect[required]'))") {
		tb.fill("#expect", strings.Fields(button)[1])
	}
	tb.click(button)
}

// begin begins a run of so many letters, which a topic's page selects, at a rate.
func (tb *tab) begin(s *server, letters int, path, rate string) {
	tb.t.Helper()
	page, query, _ := strings.Cut(path, "?")
	tb.open(s.at(page + "/redrive?" + query + "&rate=" + rate + "&ramp=none&window=1s"))
	tb.reads("#main", fmt.Sprintf("Sends %d letters to orders.retry.1s", letters))
	tb.confirm(fmt.Sprintf("Send %d letters", letters), "it is repaired")
	tb.at("/topics/orders.dlq/runs/")
}
