package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sidingkafka/siding/serve"
)

// Whoever has no mouse gets from the topics to a letter and back, and filters.
func TestKeys_GoEverywhere(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/", openInAll)
	tb.live()
	// j and k move over the rows, and stay within them.
	tb.press("j")
	tb.focus(`[id="topic-orders.dlq"]`)
	tb.press("j")
	tb.focus(`[id="topic-payments.dlq"]`)
	tb.press("kk")
	tb.focus(`[id="topic-orders.dlq"]`)
	tb.press(kb.Enter)
	tb.at("/topics/orders.dlq")
	tb.live()
	// / filters, while one types; the address has the filter.
	tb.press("/")
	tb.focus("#f-class")
	tb.press("http.*")
	tb.at("/topics/orders.dlq?class=http.*")
	tb.reads(".chips", "class: http.*")
	tb.reads("#live", "payments: service unavailable")
	tb.sees("!document.querySelector('#live').innerText.includes('no rate for region')")
	tb.press(kb.Escape + "j")
	tb.sees("document.activeElement.closest('[data-row]')")
	// The first row is the only group; behind it are the letters.
	tb.press("j")
	tb.focus(`[id^="letter-"]`)
	tb.press(kb.Enter)
	tb.at("/topics/orders.dlq/letters/")
	tb.live()
	tb.press("u")
	tb.sees("location.pathname === '/topics/orders.dlq' && document.readyState === 'complete'")
	// The browser's own way back.
	tb.do(chromedp.NavigateBack(), chromedp.NavigateBack())
	tb.at("/topics/orders.dlq?class=http.*")
	tb.reads("#live", "payments: service unavailable")
	tb.live()
	// ? lists the keys.
	tb.press("?")
	tb.sees("document.querySelector('#keys').open")
	tb.checkAll("keys")
	tb.press(kb.Escape)
	tb.sees("!document.querySelector('#keys').open")
	for _, to := range []struct{ keys, path string }{{"ga", "/audit"}, {"gr", "/runs"}, {"gl", "/rules"}, {"gt", "/"}} {
		tb.press(to.keys)
		tb.sees("location.pathname === '" + to.path + "' && document.readyState === 'complete'")
		tb.live()
	}
}

// Each link, field and button is reached by the tabulator, in the order of the page, and shows that
// it has the focus.
func TestKeys_ReachEachElement(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	for _, p := range pages {
		tb.visit(s, p.path, p.shows)
		tb.live()
		tb.reachAll(p.name)
	}
	s = i.serve(serve.Config{RulesFile: ruleFile(t)})
	tb.visit(s, "/", openInAll)
	tb.visit(s, rulePath, "Pause it here")
	tb.live()
	tb.reachAll("rule")
	i.repair()
	tb.visit(s, i.leaveRun("http.503", 1), "Resume")
	tb.live()
	tb.reachAll("run")
	tb.visit(s, "/runs", "without a process")
	tb.live()
	tb.reachAll("runs with a run")
	tb.forgive(true) // the server ends before the tab
}

// reachAll presses the tabulator from the page's beginning to its end.
func (tb *tab) reachAll(name string) {
	tb.t.Helper()
	want := eval[int](tb, `Array.from(document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')).filter((e) => e.checkVisibility() && e.tabIndex >= 0 && !e.disabled).length`)
	got, hidden := 0, ""
	for range want + 1 {
		tb.press(kb.Tab)
		at := eval[[]string](tb, `(() => {
			const e = document.activeElement, style = getComputedStyle(e), before = document.querySelector('[data-last]')
			if (e === document.body || e.dataset.reached) return []
			const back = before && !(before.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)
			if (before) delete before.dataset.last
			e.dataset.reached = e.dataset.last = 'yes'
			return [style.outlineStyle, back ? 'back' : 'forth', e.outerHTML.slice(0, 120)]
		})()`)
		if len(at) == 0 {
			break
		}
		if got++; at[0] == "none" {
			hidden += "\n" + at[2]
		}
		if at[1] == "back" {
			tb.t.Errorf("%s: the tabulator goes back to %s", name, at[2])
		}
	}
	if got < want {
		tb.t.Errorf("%s: the tabulator reaches %d elements of %d", name, got, want)
	}
	if hidden != "" {
		tb.t.Errorf("%s: these do not show that they have the focus:%s", name, hidden)
	}
}
