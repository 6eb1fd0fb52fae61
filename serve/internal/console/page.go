package console

import (
	"html/template"

	"github.com/sidingkafka/siding/serve/internal/console/view"
)

// page is what a page has besides its live part.
type page struct {
	Title string
	// Section is the page of the navigation that it belongs to.
	Section string
	// Heading is its name, and Above the pages around it.
	Heading string
	Above   []link
	// Role is the role on the topic of the page; empty without a topic.
	Role string
	// Form filters the page; nil if it has no filter.
	Form *form

	// address is the one spelling of the page's address; empty if it has no other.
	address string
	// run is the key of the run that the page is about, which needs no card besides; empty without.
	run  string
	live view.View
}

// link is a link to a page.
type link struct{ Name, Path string }

// choice is one of several.
type choice struct {
	Name, Path string
	Chosen     bool
}

// layout is the model of the template of that name.
type layout struct {
	*page
	Base  string
	Path  string // of the page, with its query
	Theme string // "light", "dark", or empty for the system's
	Who   string // empty for nobody
	// SignedIn reports whether there is a session that can end.
	SignedIn bool
	Live     template.HTML
	Seen     string // hash of Live; empty if the page does not change
	// Runs are the cards of runs that go on, RunsSeen is their hash, and Stream the address at
	// which they are followed by a page that does not change itself.
	Runs             template.HTML
	RunsSeen, Stream string
	AsOf             moment // when Live was rendered
}

// newLayout returns the layout around a page as it was rendered, without the cards.
func newLayout(r *visit, p *page, live view.Rendering) layout {
	l := layout{page: p, Base: r.base, Path: r.URL.RequestURI(), Theme: themeOf(r.Request), Seen: live.Hash}
	l.Live = template.HTML(live.HTML) //nolint:gosec // templates wrote it
	if !live.At.IsZero() {
		l.AsOf = momentOf(live.At, live.At)
	}
	if r.who != nil {
		l.Who = r.who.Name
		if l.Seen == "" {
			l.Stream = r.base + "/runs"
		}
	}
	return l
}
