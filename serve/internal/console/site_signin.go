package console

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
)

// signInModel is the model of the template "sign-in".
type signInModel struct {
	Base, Back string
	// Problem is why the sender is not known; empty if they only have to sign in.
	Problem string
	// ByToken and ByProvider are the ways to sign in.
	ByToken, ByProvider bool
}

// refuse asks a sender who is not known to sign in.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, access.ErrNobody) {
		s.message(w, &visit{Request: r, base: baseOf(r)}, http.StatusServiceUnavailable, "The OpenID provider does not answer", err.Error())
		return
	}
	s.writeSignIn(w, r, http.StatusUnauthorized, pageOf(r), err)
}

// pageOf returns the page to go back to after a sign-in. That of a form is the one that it stood
// on: its own address lacks what was typed, and would show other letters.
func pageOf(r *http.Request) string {
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host != r.Host {
		return "/"
	}
	path, ok := strings.CutPrefix(u.RequestURI(), baseOf(r))
	if !ok {
		return "/"
	}
	return path
}

func (s *site) writeSignIn(w http.ResponseWriter, r *http.Request, status int, back string, problem error) {
	req := &visit{Request: r, base: baseOf(r)}
	m := signInModel{Base: req.base, Back: access.Back(back), ByToken: s.cfg.Browser.ByToken(), ByProvider: s.cfg.Browser.ByProvider()}
	if problem != nil {
		m.Problem = strings.TrimPrefix(problem.Error(), access.ErrNobody.Error()+": ")
	}
	text, err := execute("sign-in", m)
	if err != nil {
		s.cfg.Log.Error("siding: a page of the console could not be made", "path", r.URL.Path, "error", err)
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	s.write(w, req, status, &page{Title: "Sign in"}, view.Rendering{HTML: text})
}

// askSignIn shows the ways to sign in.
func (s *site) askSignIn(w http.ResponseWriter, r *http.Request) {
	s.writeSignIn(w, r, http.StatusOK, r.URL.Query().Get("back"), nil)
}

// signIn begins a session with a bearer token.
func (s *site) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		s.failForm(w, &visit{Request: r, base: baseOf(r)}, err)
		return
	}
	back := r.PostForm.Get("back")
	if err := s.cfg.Browser.WithToken(w, r, r.PostForm.Get("token")); err != nil {
		s.writeSignIn(w, r, http.StatusUnauthorized, back, err)
		return
	}
	goBack(w, r, back)
}

// byProvider serves an address that is there if an OpenID provider is configured.
func (s *site) byProvider(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.cfg.Browser.ByProvider() {
			s.message(w, &visit{Request: r, base: baseOf(r)}, http.StatusNotFound, "There is no OpenID provider", "The server's configuration names none. The sign-in page shows how people sign in here.")
			return
		}
		f(w, r)
	}
}

// beginSignIn sends the browser to the OpenID provider.
func (s *site) beginSignIn(w http.ResponseWriter, r *http.Request) {
	address, err := s.cfg.Browser.Begin(w, r, r.URL.Query().Get("back"))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// finishSignIn is where the provider sends the browser back to.
func (s *site) finishSignIn(w http.ResponseWriter, r *http.Request) {
	back, err := s.cfg.Browser.Finish(w, r)
	switch {
	case errors.Is(err, access.ErrNobody):
		s.writeSignIn(w, r, http.StatusUnauthorized, "", err)
	case err != nil:
		s.refuse(w, r, err)
	default:
		goBack(w, r, back)
	}
}

// signOut ends a session.
func (s *site) signOut(w http.ResponseWriter, r *http.Request) {
	s.cfg.Browser.SignOut(w, r)
	http.Redirect(w, r, baseOf(r)+"/sign-in", http.StatusSeeOther)
}

// failForm answers with a page that says why a form could not be read. One that takes too long
// looks as if its browser were gone.
func (s *site) failForm(w http.ResponseWriter, r *visit, err error) {
	p := &pageError{http.StatusBadRequest, "The form is broken: nothing was done. Try again."}
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		p = &pageError{http.StatusRequestEntityTooLarge, "The form is too large: nothing was done."}
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = &pageError{http.StatusRequestTimeout, "The form took too long to arrive: nothing was done. Try again."}
	}
	s.message(w, r, p.status, http.StatusText(p.status), p.text)
}
