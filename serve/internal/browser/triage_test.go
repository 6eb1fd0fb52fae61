package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sidingkafka/siding/serve"
)

// Letters that are ticked are planned by their places, and no others are sent. Ticks outlast news.
func TestTriage_TickedLettersComeBack(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq?class=http.503", "payments: service unavailable")
	tb.live()
	tb.sees("Array.from(document.querySelectorAll('[data-ticked]')).every((b) => b.disabled)")
	tb.press("jj") // the first row is the group
	tb.focus(`[id^="letter-"]`)
	tb.press("xjx")
	tb.reads(".ticks .acts", "Redrive these 2…")
	tb.checkAll("ticks")
	i.fail("http.503")
	tb.reads("#live", "91 selected")
	tb.reads(".ticks .acts", "Redrive these 2…")
	i.repair()
	places := eval[[]string](tb, "Array.from(document.querySelectorAll('.ticks input:checked'), (i) => i.value.replace(':', '/'))")
	tb.click("Redrive these 2…")
	tb.at("/topics/orders.dlq/redrive?ticked=1&offset=")
	tb.reads("#main", "letters "+strings.Join(places, " and "))
	tb.reads("#main", "Sends 2 letters")
	tb.confirm("Send 2 letters", "these were asked for")
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#live", "2 succeeded")
	tb.visit(s, "/topics/orders.dlq", "349 open")
}

// Without a script the buttons are there, and a form without a tick is refused: it would be about
// all letters.
func TestTriage_TicksNeedNoScript(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	whole := newTab(t)
	whole.visit(s, "/", openInAll) // it has read all
	tb := newTab(t)
	tb.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	tb.visit(s, "/topics/orders.dlq", "tax.TableMiss")
	tb.forgive(true)
	tb.click("Discard the ticked…")
	tb.reads("main", "No letter is ticked")
	tb.visit(s, "/topics/orders.dlq", "tax.TableMiss")
	tb.do(chromedp.Click(chromedp.CSS(".ticks input[type=checkbox]")))
	tb.click("Discard the ticked…")
	tb.reads("main", "Discards 1 letter")
}

// j and k go from letter to letter in the list that one came from, and u goes back to that list.
func TestTriage_FromLetterToLetter(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq?class=http.503", "payments: service unavailable")
	list := eval[[]string](tb, "Array.from(document.querySelectorAll('[id^=letter-]'), (a) => a.innerText)")
	tb.do(chromedp.Click(chromedp.CSS("[id^=letter-]")))
	for _, name := range list[:4] {
		tb.reads("h1", "Letter "+name)
		tb.live()
		tb.press("j")
	}
	tb.reads("h1", "Letter "+list[4])
	tb.live()
	tb.press("k")
	tb.reads("h1", "Letter "+list[3])
	tb.live()
	tb.checkAll("letter of a filter")
	tb.press("u")
	tb.at("/topics/orders.dlq?class=http.503")
	tb.press(kb.Escape)
}

// A click on a bar filters its time, and needs no script. An incident of the last hour is shown in
// bars of a minute, with a line for the run that came to it.
func TestTriage_APictureOfTheIncident(t *testing.T) {
	i := newIncident(t)
	for n := range 60 {
		i.letter("mails", "smtp.Refused", "the server said no", []string{"1.0", "1.1"}[n/30], time.Now().Add(-time.Duration(90-n)*20*time.Second))
	}
	i.repair()
	i.leaveRun("http.503", 1)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	tb.visit(s, "/topics/orders.dlq", "run by ada")
	tb.visit(s, "/topics/mails.dlq", "60 open")
	tb.reads("#live", "in 1 min")
	tb.reads("#live", "by billing-7d4f9, release 1.0")
	tb.reads("#live", "first failure of 1.1")
	tb.sees("document.querySelectorAll('svg.picture line.release').length === 2")
	tb.do(chromedp.Click(chromedp.CSS("svg.picture a")))
	tb.at("/topics/mails.dlq?since=")
	tb.reads("#live", "since: ")
	tb.reads("#live", "selected")
}

// Failures of one class fold into a line with their total, and below it into fingerprints, each
// with the frame that failed. A letter's page has the frame beside what opens its stack.
func TestTriage_GroupsFold(t *testing.T) {
	i := newIncident(t)
	for n := range 30 {
		i.letter("mails", "smtp.Refused", []string{"the server said no", "the mailbox is full", "the name is not known here"}[n%3], "1.0", time.Now())
	}
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/mails.dlq", "3 fingerprints")
	tb.sees("document.querySelectorAll('tr.print').length === 3")
	tb.reads("tr.print", "main.(*handler).tax, tax.go:41")
	tb.checkAll("groups that fold")
	tb.do(chromedp.Click(chromedp.CSS("tr.print a.open")))
	tb.at("/topics/mails.dlq?class=smtp.Refused&fingerprint=")
	tb.reads("#live", "10 selected")
	tb.do(chromedp.Click(chromedp.CSS("[id^=letter-]")))
	tb.reads("#live", "At main.(*handler).tax, tax.go:41")
	tb.sees("!document.querySelector('#stack-text').open")
}

// Whom it hurts: letters are counted by a header or a member of the value that a reader names,
// without a script, too. What cannot be read as a field is refused.
func TestTriage_WhomItHurts(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq?class=http.503", "payments: service unavailable")
	tb.follow("Whom it hurts")
	tb.at("/topics/orders.dlq/whom?class=http.503")
	tb.fill("#by", "value.region\r")
	tb.at("/topics/orders.dlq/whom?")
	tb.reads("#main", "Letters by value.region")
	tb.sees("Array.from(document.querySelectorAll('.counts tbody tr')).length === 7")
	tb.checkAll("whom")
	tb.forgive(true)
	tb.visit(s, "/topics/orders.dlq/whom?by=tenant", "by: ")
	tb.checkAll("whom, refused")
	tb.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	tb.visit(s, "/topics/orders.dlq/whom?by=header:tenant", "north\t350")
}

// What a page shows is there as a command. It can be selected without a script, and a button copies
// it, or selects it where there is no clipboard.
func TestTriage_CommandsAreCopied(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/", openInAll)
	for path, want := range map[string]string{
		"/topics/orders.dlq?class=http.503":         "redrive list orders.dlq --class http.503",
		"/topics/orders.dlq/letters/0/60":           "redrive show orders.dlq 0:60",
		"/topics/orders.dlq/redrive?class=http.503": "redrive run orders.dlq --class http.503 --entered-until ",
	} {
		tb.visit(s, path, "As commands")
		tb.live()
		tb.do(chromedp.Click("//summary[text()='As commands']"))
		tb.reads(".command pre", want)
		tb.do(chromedp.Click(chromedp.CSS("[data-copy]")))
		tb.sees("['The command is selected.', 'Copied.'].includes(document.querySelector('#status').innerText)")
		tb.checkAll("commands of " + path)
	}
	tb.visit(s, "/", openInAll)
	tb.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	tb.visit(s, "/topics/orders.dlq", "As commands")
	tb.do(chromedp.Click("//summary[text()='As commands']"))
	tb.reads(".command pre", "redrive list orders.dlq")
	tb.sees("getComputedStyle(document.querySelector('[data-copy]')).display === 'none'")
}

// One edit changes many letters; the page shows what it does to the first three of them.
func TestTriage_OneEditForMany(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq?class=http.503", "payments: service unavailable")
	tb.plan(90)
	tb.live() // what comes before that may move what is clicked
	tb.do(chromedp.Click("//main//summary[text()='Change what they carry']"))
	tb.fill("#e-patch", `{"region":"NO"}`)
	tb.do(chromedp.Focus("//main//button[text()='Show what changes, and plan']"))
	tb.press(kb.Enter)
	tb.reads("#main", "The first 3 of 90.")
	tb.sees("Array.from(document.querySelectorAll('.diff ins')).filter((e) => e.innerText.includes('\"region\": \"NO\"')).length === 3")
	tb.sees("!location.search.includes('NO')")
	tb.checkAll("edit of many")
	i.repair()
	tb.confirm("Send 90 letters", "the region was missing")
	tb.at("/topics/orders.dlq/runs/")
	tb.reads("#live", "90 succeeded")
	for range 90 {
		if r := <-i.handled; !strings.Contains(string(r.Value), `"region":"NO"`) {
			t.Fatalf("the service got %s", r.Value)
		}
	}
}
