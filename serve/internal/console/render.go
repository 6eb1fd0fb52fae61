package console

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sidingkafka/siding/serve/internal/number"
)

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

// keyOf returns the key of a view. Other parts give another key, whatever the parts contain: two
// people who may see different things never share a view.
func keyOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(strconv.Quote(p))
	}
	return b.String()
}

// viewOf returns a view that a template renders of a model.
func viewOf(name, key string, version func() uint64, model func(ctx context.Context, now time.Time) (any, error)) view {
	return view{key: keyOf(name) + key, version: version, render: func(ctx context.Context, now time.Time) ([]byte, error) {
		m, err := model(ctx, now)
		if err != nil {
			return nil, err
		}
		return execute(name, m)
	}}
}

// layout is the model of the template of that name.
type layout struct {
	*page
	Base  string
	Path  string // of the page, with its query
	Theme string // "light", "dark", or empty for the system's
	Who   string // empty for nobody
	// SignedIn tells whether there is a session that can end.
	SignedIn bool
	Live     template.HTML
	Seen     string // hash of Live; empty if the page does not change
	// Runs are the cards of runs that go on, RunsSeen is their hash, and Stream the address at
	// which they are followed by a page that does not change itself.
	Runs             template.HTML
	RunsSeen, Stream string
	AsOf             moment // when Live was rendered
}

// write answers with a page.
func (c *Console) write(w http.ResponseWriter, r *request, status int, p *page, live rendering) {
	l := layout{page: p, Base: r.base, Path: r.URL.RequestURI(), Theme: themeOf(r.Request), Seen: live.hash, SignedIn: c.browser.SignedIn(r.Request)}
	l.Live = template.HTML(live.html) //nolint:gosec // templates wrote it
	if !live.at.IsZero() {
		l.AsOf = momentOf(live.at, live.at)
	}
	if r.who != nil {
		l.Who = r.who.Name
		v := c.cards(r, p.run)
		cards, err := c.views.get(r.Context(), &v)
		if err != nil && r.Context().Err() == nil {
			c.log.Error("siding: the cards of runs could not be made", "error", err)
		}
		l.Runs, l.RunsSeen = template.HTML(cards.html), cards.hash //nolint:gosec // templates wrote it
		if l.Seen == "" {
			l.Stream = r.base + "/runs"
		}
	}
	text, err := execute("layout", l)
	if err != nil {
		c.log.Error("siding: a page of the console could not be made", "path", r.URL.Path, "error", err)
		http.Error(w, "The server could not make this page. Its log has the reason.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status == http.StatusOK {
		w.Header().Set("Vary", "Accept, Cookie")
		if seen := `"` + live.hash + "." + l.RunsSeen + `"`; live.hash != "" && r.Header.Get("X-Poll") != "" {
			w.Header().Set("ETag", seen)
			if r.Header.Get("If-None-Match") == seen {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// say answers with a page of words.
func (c *Console) say(w http.ResponseWriter, r *request, status int, title, text string) {
	live, err := execute("message", struct{ Heading, Text, Base string }{title, text, r.base})
	if err != nil {
		http.Error(w, text, status)
		return
	}
	c.write(w, r, status, &page{Title: title}, rendering{html: live})
}

const themeCookie = "siding-theme"

// themes are what people can choose, each with the one that follows.
var themes = map[string]string{"": "dark", "dark": "light", "light": ""}

func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "dark" && c.Value != "light" {
		return ""
	}
	return c.Value
}
