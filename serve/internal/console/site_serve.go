package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
)

// admit finds out who sends a request, and keeps to the limits. Unless ok, it has answered: whoever
// is not known is asked to sign in.
func (s *site) admit(w http.ResponseWriter, r *http.Request, length access.Length) (req *visit, end func(), ok bool) {
	req = &visit{Request: r, query: r.URL.Query(), base: baseOf(r), now: time.Now()}
	who, unknown := s.cfg.Browser.Who(r)
	if unknown != nil {
		who = nil
	}
	ctx, end, err := s.cfg.Gate.Admit(w, r, who, length)
	switch {
	case err != nil:
		s.fail(w, req, err)
		return nil, nil, false
	case unknown != nil:
		defer end()
		s.refuse(w, r, unknown)
		return nil, nil, false
	}
	req.who, req.Request = who, r.WithContext(access.Asking(ctx, r, who, s.cfg.Browser.Who))
	return req, end, true
}

// forAnybody answers whoever it is, within the limits. Whoever is not known is here to sign in.
func (s *site) forAnybody(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.cfg.Browser.Who(r)
		if err != nil {
			who = access.Guest
		}
		ctx, end, err := s.cfg.Gate.Admit(w, r, who, access.Usual)
		if err != nil {
			s.fail(w, &visit{Request: r, base: baseOf(r)}, err)
			return
		}
		defer end()
		h(w, r.WithContext(ctx))
	})
}

// page answers with a page, or with a stream of its live part.
func (s *site) page(of func(*visit) (*page, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		follows, reads, length := strings.Contains(r.Header.Get("Accept"), "text/event-stream"), access.ReadsLetters(r.URL.Query()), access.Usual
		switch {
		case follows && reads:
			length = access.Stream
		case follows:
			length = access.Live
		case reads:
			length = access.Long
		}
		req, end, ok := s.admit(w, r, length)
		if !ok {
			return
		}
		defer end()
		r = req.Request
		seen := req.query.Get("seen")
		req.query.Del("seen")
		p, err := of(req)
		if err != nil {
			s.fail(w, req, err)
			return
		}
		if follows {
			cards := cardsView(s.cfg.Desk, &s.meter, req, p.run)
			if err := s.streams.Serve(w, r, &p.live, &cards, seen); err != nil {
				w.Header().Set("Retry-After", "10")
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
			return
		}
		switch {
		case p.address == "" || r.Header.Get("HX-History-Restore-Request") != "":
		case r.Header.Get("HX-Request") != "":
			w.Header().Set("HX-Push-Url", p.address)
		case hasEmpty(req.query):
			// A form sends the fields that are empty, too.
			http.Redirect(w, r, p.address, http.StatusSeeOther)
			return
		}
		live, err := s.views.Get(r.Context(), &p.live)
		if err != nil {
			s.fail(w, req, err)
			return
		}
		s.write(w, req, http.StatusOK, p, live)
	})
}

func hasEmpty(q url.Values) bool {
	for _, values := range q {
		if slices.Contains(values, "") {
			return true
		}
	}
	return false
}

// answers serves a form: GET shows it, and POST does what it says. What the sender asked for is
// done although their browser is gone, so that a second click finds the first one's work.
func (s *site) answers(of func(*visit) (*answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, end, ok := s.admit(w, r, access.Long)
		if !ok {
			return
		}
		defer end()
		r = req.Request
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, mostEdit)
			if err := r.ParseForm(); err != nil {
				s.failForm(w, req, err)
				return
			}
			req.query = r.PostForm
			last, _ := r.Context().Deadline()
			ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), last)
			defer cancel()
			req.Request = r.WithContext(ctx)
		}
		a, err := of(req)
		if r.Method == http.MethodPost {
			s.views.Acted()
		}
		if err != nil {
			s.fail(w, req, err)
			return
		}
		if a.to != "" {
			http.Redirect(w, r, a.to, http.StatusSeeOther)
			return
		}
		status := http.StatusOK
		if a.problem != nil {
			status, _ = s.explain(req, a.problem)
		}
		html, err := execute(a.template, a.model)
		if err != nil {
			s.fail(w, req, err)
			return
		}
		s.write(w, req, status, &a.page, view.Rendering{HTML: html})
	})
}
