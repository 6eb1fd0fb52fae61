package browser

import (
	"testing"

	"github.com/sidingkafka/siding/serve"
)

// What happens shows up on open pages, with a mark, and without loading them again.
func TestLive_PagesFollow(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	overview, topic := newTab(t), newTab(t)
	overview.visit(s, "/", openInAll)
	topic.visit(s, "/topics/orders.dlq", openOrders)
	for _, tb := range []*tab{overview, topic} {
		tb.live()
		tb.run("window.loadedOnce = true")
	}
	i.fail("mail.Bounced")
	overview.reads("#live", oneMoreInAll)
	topic.reads("#live", oneMoreOrders)
	topic.reads("tr.changed", "mail.Bounced")
	for _, tb := range []*tab{overview, topic} {
		if !eval[bool](tb, "window.loadedOnce === true") {
			t.Error("the page was loaded again")
		}
	}
}

// A tab that is left open over a restart of the server says so, and goes on.
func TestLive_GoesOnAfterARestart(t *testing.T) {
	i := newIncident(t)
	s := i.serve(serve.Config{})
	tb := newTab(t)
	tb.visit(s, "/topics/orders.dlq", openOrders)
	tb.live()
	tb.run("window.loadedOnce = true")
	tb.forgive(true)
	s.stop()
	tb.reads("#status", "The connection is lost. The page tries again.")
	const dimmed = "getComputedStyle(document.querySelector('main')).opacity < 1"
	tb.sees(dimmed)
	i.fail("mail.Bounced")
	s.again()
	tb.reads("#live", oneMoreOrders)
	tb.live()
	tb.sees("!(" + dimmed + ")")
	if !eval[bool](tb, "window.loadedOnce === true") {
		t.Error("the page was loaded again")
	}
}
