package onend

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTarget_PostSendsJSONOnce(t *testing.T) {
	t.Parallel()
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls = append(calls, r.Method+" "+r.URL.String()+" "+r.Header.Get("Content-Type")+" "+string(body))
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	for path, says := range map[string]string{"/ok?x=1": "", "/moved": "it answered 307 Temporary Redirect", "/broken": "it answered 502 Bad Gateway"} {
		calls = nil
		_, err := told(t, server.URL+path, Patience)
		wants(t, err, says, path)
		if want := "POST " + path + ` application/json {"run":"orders.dlq/r-1"}`; len(calls) != 1 || calls[0] != want {
			t.Errorf("%s: %q, want %q", path, calls, want)
		}
	}
}

func TestTarget_PostGivesUpAndKeepsThePathSecret(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hangs }))
	defer server.Close()
	defer close(hangs)
	_, err := told(t, server.URL+"/hunter2", 100*time.Millisecond)
	wants(t, err, "it took more than 100ms, and was given up")
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err = told(t, gone.URL+"/hunter2", Patience)
	wants(t, err, "connection refused")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("it says %v", err)
	}
}
