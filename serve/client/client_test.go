package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// answers is a server that answers each request in the same way.
type answers http.HandlerFunc

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

// clientOf returns a client of a server.
func clientOf(t *testing.T, server http.HandlerFunc) *client.Client {
	t.Helper()
	c, err := client.New("https://siding.example.com/below", "a token", &http.Client{Transport: answers(server)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// changes are the methods that change something, and asks those that do not.
func changes(t *testing.T, c *client.Client) map[string]func() error {
	return map[string]func() error{
		"Plan":           func() error { _, err := c.Plan(t.Context(), "a.dlq", api.RunRequest{}); return err },
		"Start":          func() error { _, err := c.Start(t.Context(), "a.dlq", api.RunRequest{}, "key"); return err },
		"Redrive":        func() error { _, err := c.Redrive(t.Context(), "a.dlq", 0, 1, api.RunOptions{}, ""); return err },
		"Abort":          func() error { _, err := c.Abort(t.Context(), "a.dlq", "r", api.AbortRequest{}); return err },
		"Resume":         func() error { _, err := c.Resume(t.Context(), "a.dlq", "r", api.ResumeRequest{}); return err },
		"Discard":        func() error { _, err := c.Discard(t.Context(), "a.dlq", api.BulkDiscardRequest{}); return err },
		"DiscardLetter":  func() error { _, err := c.DiscardLetter(t.Context(), "a.dlq", 0, 1, api.DiscardRequest{}); return err },
		"ReopenLetter":   func() error { _, err := c.ReopenLetter(t.Context(), "a.dlq", 0, 1, api.ReopenRequest{}); return err },
		"ApplyRetention": func() error { _, err := c.ApplyRetention(t.Context(), "a.dlq"); return err },
		"PauseRule":      func() error { _, err := c.PauseRule(t.Context(), "r", "a.dlq", api.PauseRequest{}); return err },
		"ResumeRule":     func() error { _, err := c.ResumeRule(t.Context(), "r", "a.dlq", api.PauseRequest{}); return err },
	}
}

func asks(t *testing.T, c *client.Client) map[string]func() error {
	return map[string]func() error{
		"Topics":       func() error { _, err := c.Topics(t.Context()); return err },
		"Topic":        func() error { _, err := c.Topic(t.Context(), "a.dlq"); return err },
		"Letters":      func() error { _, err := c.Letters(t.Context(), "a.dlq", api.Filter{}, "", 0); return err },
		"TryRetention": func() error { _, err := c.TryRetention(t.Context(), "a.dlq"); return err },
		"Rules":        func() error { _, err := c.Rules(t.Context()); return err },
		"RuleHistory":  func() error { _, err := c.RuleHistory(t.Context(), "r", 0); return err },
		"TryRule":      func() error { _, err := c.TryRule(t.Context(), "r", "a.dlq"); return err },
		"Export": func() error {
			lines, err := c.Export(t.Context(), "a.dlq", api.Filter{}, false)
			if err != nil {
				return err
			}
			defer lines.Close()
			_, err = io.ReadAll(lines)
			return err
		},
		"Follow": func() error {
			for _, err := range c.Follow(t.Context(), "a.dlq", "r", "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// A proxy in front of the server moved it, by 301: net/http asked the new address by GET, so that
// ApplyRetention took for its report what it would delete, and DiscardLetter an empty answer for
// success. By 307 and 308 a request with its values went on to whatever host the answer named.
func TestClient_ARedirectedPostIsAnError(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		for _, to := range []string{"", "/elsewhere", "https://elsewhere.example/"} {
			var sent []string
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if sent = append(sent, r.Method); len(sent) == 1 {
					if to != "" {
						w.Header().Set("Location", to)
					}
					w.WriteHeader(status)
				}
				_, _ = io.WriteString(w, `{"topic":"a.dlq","deleted":3}`)
			})
			for name, change := range changes(t, c) {
				sent = nil
				err := change()
				p, ok := errors.AsType[*api.Problem](err)
				if !ok || p.Status != status || !strings.Contains(err.Error(), "was not carried out") || !strings.Contains(err.Error(), to) || len(sent) != 1 {
					t.Errorf("%s behind a %d to %q: %v, after %v", name, status, to, err, sent)
				}
			}
		}
	}
}

// What asks only goes on to the address at which the server is now.
func TestClient_ARedirectedGetIsAnswered(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.Redirect(w, r, "/there", http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, `{"topic":"a.dlq"}`)
	})
	if got, err := c.Topic(t.Context(), "a.dlq"); err != nil || got.Topic != "a.dlq" {
		t.Errorf("the topic is %+v, %v", got, err)
	}
	// a caller's own limit on redirects counts
	stops, err := client.New("https://siding.example.com", "", &http.Client{
		Transport:     answers(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) }),
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("no further") },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stops.Topics(t.Context()); err == nil || !strings.Contains(err.Error(), "no further") {
		t.Errorf("with a limit of the caller's: %v", err)
	}
	loops := clientOf(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) })
	if _, err := loops.Topics(t.Context()); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("a loop: %v", err)
	}
}

// A page for signing in, with status 200, is no answer of the API; neither is no content.
func TestClient_OnlyAnAnswerOfTheAPICounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status     int
		kind, text string
		streamsToo bool // whether the streams take it
		says       string
	}{
		{http.StatusOK, "text/html; charset=utf-8", "<html>Sign in</html>", false, "text/html"},
		{http.StatusOK, "text/plain", "{}", false, "text/plain"},
		{http.StatusOK, "", "{}", false, "no content type"},
		{http.StatusOK, "application/json-seq", "{}", false, "application/json-seq"},
		{http.StatusOK, "junk;;", "{}", false, "junk"},
		{http.StatusOK, "application/json", "", false, "EOF"},
		{http.StatusNoContent, "", "", true, "no content type"},
	} {
		c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if test.kind != "" {
				w.Header().Set("Content-Type", test.kind)
			}
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.text)
		})
		all := asks(t, c)
		for name, change := range changes(t, c) {
			all[name] = change
		}
		for name, do := range all {
			err := do()
			switch stream := name == "Follow"; {
			case stream && test.streamsToo:
				if err != nil {
					t.Errorf("%s of no further events: %v", name, err)
				}
			case err == nil || name != "Follow" && name != "Export" && !strings.Contains(err.Error(), test.says):
				t.Errorf("%s took %d %q %q: %v, want an error with %q", name, test.status, test.kind, test.text, err, test.says)
			}
		}
	}
}

// Whether the server sends a 429 or a proxy before it: it is a problem, of a kind that callers can
// ask for, and says how long to wait.
func TestClient_TooManyRequestsSayWhenToAskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		problem := `{"type":"` + api.TooManyRequests.Type() + `","title":"Too Many Requests","status":429,"detail":"token ci sends too much"}`
		for _, test := range []struct {
			kind, text, after string
			want              time.Duration
		}{
			{"application/problem+json", problem, "10", 10 * time.Second},
			{"application/problem+json", problem, "", 0},
			{"text/html", "<html>slow down</html>", "3", 3 * time.Second},
			{"text/plain", "", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), time.Minute},
			{"text/plain", "", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat), 0},
			{"text/plain", "", "-1", 0},
			{"text/plain", "", "soon", 0},
			{"text/plain", "", "99999999999999999999", 0},
			{"application/json", `{"type":7}`, "1", time.Second},
		} {
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.kind)
				if test.after != "" {
					w.Header().Set("Retry-After", test.after)
				}
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, test.text)
			})
			all := changes(t, c)
			for name, ask := range asks(t, c) {
				all[name] = ask
			}
			for name, do := range all {
				err := do()
				p, ok := errors.AsType[*api.Problem](err)
				if !ok || !client.IsProblem(err, api.TooManyRequests) || p.Status != http.StatusTooManyRequests || p.RetryAfter != test.want || err.Error() == "" {
					t.Errorf("%s, refused with %q by %q: %+v, want a wait of %v", name, test.text, test.after, err, test.want)
				}
			}
		}
	})
}

// Other errors of a proxy are problems, too, of no kind of the server's.
func TestClient_AnErrorOfAProxyIsAProblem(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
	})
	_, err := c.Topics(t.Context())
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || p.Status != http.StatusServiceUnavailable || p.Kind() != "about:blank" || p.RetryAfter != 7*time.Second || !strings.Contains(err.Error(), "no healthy upstream") {
		t.Errorf("%+v", err)
	}
}
