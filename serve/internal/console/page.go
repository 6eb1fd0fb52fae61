package console

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/number"
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
	Who   string // empty if the sender is not known
	// SignedIn reports whether there is a session that can end.
	SignedIn bool
	Live     template.HTML
	LiveHash string // empty if the page does not change
	// Runs are the cards of runs that go on, RunsHash is their hash, and Stream the address at
	// which they are followed by a page that does not change itself.
	Runs             template.HTML
	RunsHash, Stream string
	AsOf             moment // when Live was rendered
}

// newLayout returns the layout around a page as it was rendered, without the cards.
func newLayout(r *visit, p *page, live view.Rendering) layout {
	l := layout{page: p, Base: r.base, Path: r.URL.RequestURI(), Theme: themeOf(r.Request), LiveHash: live.Hash}
	l.Live = template.HTML(live.HTML) //nolint:gosec // templates wrote it
	if !live.At.IsZero() {
		l.AsOf = momentOf(live.At, live.At)
	}
	if r.who != nil {
		l.Who = r.who.Name
		if l.LiveHash == "" {
			l.Stream = r.base + "/runs"
		}
	}
	return l
}

//go:embed templates/*.html
var templateFiles embed.FS

// templates are the pages. html/template escapes each value by the place at which it stands, so
// what a record contains stays text.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"asset": assetPath,
	"number": func(n any) string {
		if small, ok := n.(int); ok {
			return number.Format(int64(small))
		}
		large, _ := n.(int64)
		return number.Format(large)
	},
	"long":  func(n int) int64 { return int64(n) },
	"text":  visible,
	"wrap":  wrappable,
	"name":  nameOf,
	"lower": strings.ToLower,
}).ParseFS(templateFiles, "templates/*.html"))

// nameOf returns a class as people read it.
func nameOf(class string) string {
	if class == "" {
		return noClass
	}
	return visible(class)
}

// Words of at most wholeWord letters stand on one line, and so do mostUnbroken letters of a longer
// one at most, if the column is narrow.
const (
	wholeWord    = 24
	mostUnbroken = 16
)

// wrappable returns a text whose long words break where a reader expects it: after punctuation and
// before a capital. So columns of tables stay narrow, and nothing short is cut.
func wrappable(text string) template.HTML {
	var b strings.Builder
	for word := range strings.SplitAfterSeq(visible(text), " ") {
		whole := utf8.RuneCountInString(word) <= wholeWord
		var before rune
		unbroken := 0
		for _, r := range word {
			ends := strings.ContainsRune(".-_/:@+,=", before) && (unicode.IsLetter(r) || unicode.IsDigit(r)) || unicode.IsLower(before) && unicode.IsUpper(r)
			if !whole && (ends && unbroken > 1 || unbroken >= mostUnbroken) {
				b.WriteString("<wbr>")
				unbroken = 0
			}
			b.WriteString(template.HTMLEscapeString(string(r)))
			before = r
			unbroken++
		}
	}
	return template.HTML(b.String()) //nolint:gosec // each letter is escaped
}

// execute renders a template.
func execute(name string, model any) ([]byte, error) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, model); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return b.Bytes(), nil
}

// viewOf returns a view that a template renders of a model.
func viewOf(name, key string, version func() uint64, model func(ctx context.Context, now time.Time) (any, error)) view.View {
	return view.View{Key: view.KeyOf(name) + key, Version: version, Render: func(ctx context.Context, now time.Time) ([]byte, error) {
		m, err := model(ctx, now)
		if err != nil {
			return nil, err
		}
		return execute(name, m)
	}}
}
