package console

import (
	"net/http"

	"github.com/sidingkafka/siding/serve/internal/access"
)

const themeCookie = "siding-theme"

// themes are what people can choose, each with the one that follows.
var themes = map[string]string{"": "dark", "dark": "light", "light": ""}

// themeOf returns the theme that a browser shows; empty for the system's.
func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "dark" && c.Value != "light" {
		return ""
	}
	return c.Value
}

// setTheme goes on to the next theme, and back to the page.
func setTheme(w http.ResponseWriter, r *http.Request) {
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

// goBack sends the browser to a path below the console.
func goBack(w http.ResponseWriter, r *http.Request, path string) {
	if path = access.Back(path); path == "" {
		path = "/"
	}
	http.Redirect(w, r, baseOf(r)+path, http.StatusSeeOther)
}
