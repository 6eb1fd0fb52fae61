package console

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/admit"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// Config is what a [Console] depends on.
type Config struct {
	Gate    *admit.Gate
	Browser *access.Browser // knows who is there
	Desk    *operate.Desk
	Redact  *redact.Rules // nil if nothing is hidden
	Log     *slog.Logger
}

// site is what all pages share.
type site struct {
	cfg     Config
	views   *view.Views
	streams *view.Streams
	meter   meter
	memory  memory
}

func newSite(cfg Config) *site {
	all := view.NewViews()
	return &site{cfg: cfg, views: all, streams: view.NewStreams(all)}
}

// write answers with a page.
func (s *site) write(w http.ResponseWriter, r *visit, status int, p *page, live view.Rendering) {
	l := newLayout(r, p, live)
	l.SignedIn = s.cfg.Browser.SignedIn(r.Request)
	if r.who != nil {
		v := cardsView(s.cfg.Desk, &s.meter, r, p.run)
		cards, err := s.views.Get(r.Context(), &v)
		if err != nil && r.Context().Err() == nil {
			s.cfg.Log.Error("siding: the cards of runs could not be made", "error", err)
		}
		l.Runs, l.RunsHash = template.HTML(cards.HTML), cards.Hash //nolint:gosec // templates wrote it
	}
	text, err := execute("layout", l)
	if err != nil {
		s.cfg.Log.Error("siding: a page of the console could not be made", "path", r.URL.Path, "error", err)
		http.Error(w, "The server could not make this page. Its log has the reason.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status == http.StatusOK {
		w.Header().Set("Vary", "Accept, Cookie")
		if seen := `"` + live.Hash + "." + l.RunsHash + `"`; live.Hash != "" && r.Header.Get("X-Poll") != "" {
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

// message answers with a page of words.
func (s *site) message(w http.ResponseWriter, r *visit, status int, title, text string) {
	live, err := execute("message", struct{ Heading, Text, Base string }{title, text, r.base})
	if err != nil {
		http.Error(w, text, status)
		return
	}
	s.write(w, r, status, &page{Title: title}, view.Rendering{HTML: live})
}

// fail answers with a page that says what is wrong.
func (s *site) fail(w http.ResponseWriter, r *visit, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		return // the browser is gone
	}
	status, text := s.explain(r, err)
	s.message(w, r, status, http.StatusText(status), text)
}

// explain returns the status and the words for an error, without what redaction hides: it may quote
// a letter. An error that has no status is logged.
func (s *site) explain(r *visit, err error) (status int, text string) {
	var known withStatus
	switch {
	case errors.As(err, &known):
		return known.GetStatus(), failure.Outside(s.cfg.Redact, known.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "The brokers did not answer in time. Try again."
	}
	s.cfg.Log.Error("siding: a page of the console could not be made", "path", r.URL.Path, "error", err)
	return http.StatusInternalServerError, "The server could not make this page. Its log has the reason."
}

// problemOf returns the words for an error; none for nil.
func (s *site) problemOf(r *visit, err error) string {
	if err == nil {
		return ""
	}
	_, text := s.explain(r, err)
	return text
}

// once carries out the form of a request, by its key.
func (s *site) once(r *visit, do func() error) error {
	key, why := r.query.Get("key"), r.query.Get("why")
	if key == "" || len(key) > mostKey {
		return badInput("The form is not one of this page: nothing was done. Look at it again.")
	}
	if len(why) > mostWhy {
		return badInput("The reason has %d bytes, and %d are allowed: nothing was done.", len(why), mostWhy)
	}
	// a form of another sender, or with other content, is another one
	return s.memory.once(view.KeyOf(r.who.Name, r.URL.Path, r.query.Encode()), r.now, do)
}
