package console

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// lastPart strips all but the last part of a path, as a service may that mounts the console below a
// path which says for whom.
func lastPart(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := r.URL.EscapedPath()
		last = last[strings.LastIndexByte(last, '/')+1:]
		http.StripPrefix(strings.TrimSuffix(r.URL.EscapedPath(), "/"+last), h).ServeHTTP(w, r)
	})
}

// Wherever the console is mounted, and whatever a browser asks for, no answer sends it to another
// site: neither by the way back from a sign-in, nor by the path of the request.
func FuzzConsole_SendsNobodyAway(f *testing.F) {
	for _, target := range []string{
		"/sign-in", "/siding/sign-in", "//evil.example/sign-in", "/siding//evil.example", "///", "/siding/..//evil.example", "/%2f/evil.example", `/\evil.example`, "http://evil.example/sign-in", "/siding/%2e%2e/",
		"//evil.example/siding/x", "/siding", "/siding?//evil.example", "*", "/;//evil.example",
	} {
		for _, back := range []string{"", "/", "/topics/a", "//evil.example", `/\evil.example`, "/..//evil.example", "/.//evil.example"} {
			f.Add(target, back)
		}
	}
	f.Fuzz(func(t *testing.T, target, back string) {
		text := "POST " + target + " HTTP/1.1\r\nHost: siding.example\r\n\r\n"
		goes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { goBack(w, r, back) })
		for where, h := range map[string]http.Handler{"/": goes, "/siding": http.StripPrefix("/siding", goes), "/siding/": http.StripPrefix("/siding/", goes), "all but the last part": lastPart(goes)} {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
			if err != nil {
				return // net/http refuses it, too
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusNotFound {
				continue // it is not there
			}
			to := strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(w.Header().Get("Location"))
			if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
				t.Errorf("%q below %s, back to %q: it leads to %q", target, where, back, to)
			}
		}
	})
}
