package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// signInModel is the model of the template "sign-in".
type signInModel struct {
	Base, Back string
	// Problem is why the sender is not known; empty if they only have to sign in.
	Problem string
	// ByToken and ByProvider are the ways to sign in.
	ByToken, ByProvider bool
}

// refuse asks somebody who is not known to sign in.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, access.ErrNobody) {
		c.say(w, &request{Request: r, base: baseOf(r)}, http.StatusServiceUnavailable, "The OpenID provider does not answer", err.Error())
		return
	}
	c.writeSignIn(w, r, http.StatusUnauthorized, pageOf(r), err)
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

func (c *Console) writeSignIn(w http.ResponseWriter, r *http.Request, status int, back string, problem error) {
	req := &request{Request: r, base: baseOf(r)}
	m := signInModel{Base: req.base, Back: access.Back(back), ByToken: c.browser.ByToken(), ByProvider: c.browser.ByProvider()}
	if problem != nil {
		m.Problem = strings.TrimPrefix(problem.Error(), access.ErrNobody.Error()+": ")
	}
	text, err := execute("sign-in", m)
	if err != nil {
		c.log.Error("siding: a page of the console could not be made", "path", r.URL.Path, "error", err)
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	c.write(w, req, status, &page{Title: "Sign in"}, rendering{html: text})
}

// askSignIn shows the ways to sign in.
func (c *Console) askSignIn(w http.ResponseWriter, r *http.Request) {
	c.writeSignIn(w, r, http.StatusOK, r.URL.Query().Get("back"), nil)
}

// goBack sends the browser to a path below the console.
func goBack(w http.ResponseWriter, r *http.Request, path string) {
	if path = access.Back(path); path == "" {
		path = "/"
	}
	http.Redirect(w, r, baseOf(r)+path, http.StatusSeeOther)
}

// signIn begins a session with a bearer token.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		c.failForm(w, &request{Request: r, base: baseOf(r)}, err)
		return
	}
	back := r.PostForm.Get("back")
	if err := c.browser.WithToken(w, r, r.PostForm.Get("token")); err != nil {
		c.writeSignIn(w, r, http.StatusUnauthorized, back, err)
		return
	}
	goBack(w, r, back)
}

// byProvider serves an address that is there if an OpenID provider is configured.
func (c *Console) byProvider(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.browser.ByProvider() {
			c.say(w, &request{Request: r, base: baseOf(r)}, http.StatusNotFound, "There is no OpenID provider", "The server's configuration names none. The sign-in page shows how people sign in here.")
			return
		}
		f(w, r)
	}
}

// beginSignIn sends the browser to the OpenID provider.
func (c *Console) beginSignIn(w http.ResponseWriter, r *http.Request) {
	address, err := c.browser.Begin(w, r, r.URL.Query().Get("back"))
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// finishSignIn is where the provider sends the browser back to.
func (c *Console) finishSignIn(w http.ResponseWriter, r *http.Request) {
	back, err := c.browser.Finish(w, r)
	switch {
	case errors.Is(err, access.ErrNobody):
		c.writeSignIn(w, r, http.StatusUnauthorized, "", err)
	case err != nil:
		c.refuse(w, r, err)
	default:
		goBack(w, r, back)
	}
}

// signOut ends a session.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	c.browser.SignOut(w, r)
	http.Redirect(w, r, baseOf(r)+"/sign-in", http.StatusSeeOther)
}

// setTheme goes on to the next theme, and back to the page.
func (c *Console) setTheme(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	_ = r.ParseForm() // without it, the first page follows
	next, ok := themes[themeOf(r)]
	if !ok {
		next = ""
	}
	cookie := &http.Cookie{Name: themeCookie, Value: next, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil}
	if next == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
	goBack(w, r, r.PostForm.Get("back"))
}
