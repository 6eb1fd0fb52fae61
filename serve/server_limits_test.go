package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
)

// operators are two people who may bring letters back, and their tokens.
var operators = map[string]string{"ada": "[{role: operator}]", "bob": "[{role: operator}]"}

// listens runs a server that listens, until the test ends, and returns what connects to it.
func (is *station) listens() (connect func() net.Conn) {
	return is.listensAs(func(l net.Listener) net.Listener { return l })
}

// listensAs is listens with a listener of another kind around the server's.
func (is *station) listensAs(kind func(net.Listener) net.Listener) (connect func() net.Conn) {
	is.t.Helper()
	s, err := serve.New(serve.Config{
		Kafka: is.k.Opts(), Refresh: 10 * time.Second, Access: serve.Access{TokensFile: tokenFile(is.t, operators)},
	}, slog.New(slog.NewTextHandler(is.t.Output(), nil)))
	if err != nil {
		is.t.Fatal(err)
	}
	is.Server = s
	network := new(kfake.VirtualNetwork)
	l, err := network.Listen("tcp", "127.0.0.1:8642")
	if err != nil {
		is.t.Fatal(err)
	}
	beside(is.t, func(ctx context.Context) error { return s.Serve(ctx, kind(l)) })
	return func() net.Conn {
		c, err := network.DialContext(is.t.Context(), "tcp", "127.0.0.1:8642")
		if err != nil {
			is.t.Fatal(err)
		}
		is.t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// silence has the broker answer no fetch while it is set.
func (is *station) silence() *atomic.Bool {
	var silent atomic.Bool
	is.k.Cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		is.k.Cluster.KeepControl()
		return nil, nil, silent.Load()
	})
	is.t.Cleanup(func() { silent.Store(false) })
	return &silent
}

// says sends a request over a connection, and returns the answer, how long it took, and its text.
func says(t *testing.T, c net.Conn, request string) (answer *http.Response, took time.Duration, text string) {
	t.Helper()
	begun := time.Now()
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, time.Since(begun), string(body)
}

const (
	ofAda = "\nHost: localhost\nAuthorization: Bearer ada\n"
	aForm = "Content-Type: application/x-www-form-urlencoded\n"
)

// A client that sends a request slowly holds nothing for longer than ten seconds.
func TestServer_RefusesASlowBody(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 1)
		connect := is.listens()
		is.knowsTheLetter("Authorization", "Bearer ada")
		for what, request := range map[string]string{
			"the API":          "POST /api/v1/topics/orders.dlq/plan HTTP/1.1" + ofAda + "Content-Type: application/json\nContent-Length: 100\n\n{",
			"a form":           "POST /topics/orders.dlq/redrive HTTP/1.1" + ofAda + aForm + "Content-Length: 100\n\ndo=begin",
			"signing in":       "POST /sign-in HTTP/1.1\nHost: localhost\n" + aForm + "Content-Length: 100\n\ntoken=",
			"a form in pieces": "POST /topics/orders.dlq/discard HTTP/1.1" + ofAda + aForm + "Transfer-Encoding: chunked\n\n2\ndo\n",
		} {
			answer, took, text := says(t, connect(), request)
			if answer.StatusCode != http.StatusRequestTimeout || took < 9*time.Second || took > 11*time.Second {
				t.Errorf("%s: %d after %v: %s", what, answer.StatusCode, took, text)
			}
			if want := map[bool]string{true: `#too-slow"`, false: "took too long"}[what == "the API"]; !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", what, want, text)
			}
		}
	})
}

// Brokers that do not answer end a request in its time. What reads a whole topic has more of it,
// and ends when package dlq has seen nothing for a minute: no limit of reading a request ends it
// before.
func TestServer_EndsARequestInItsTime(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 1)
		connect, silent := is.listens(), is.silence()
		is.knowsTheLetter("Authorization", "Bearer ada")
		silent.Store(true)
		const where = `{"filter":{"where":"true"}}`
		for _, test := range []struct {
			request, want string
			code          int
			least, most   time.Duration
		}{
			{"GET /api/v1/topics/orders.dlq/letters/0/0 HTTP/1.1" + ofAda + "\n", `#timeout"`, http.StatusGatewayTimeout, 30 * time.Second, 35 * time.Second},
			{"GET /topics/orders.dlq/letters/0/0 HTTP/1.1" + ofAda + "\n", "brokers did not answer in the time", http.StatusGatewayTimeout, 15 * time.Second, 35 * time.Second},
			{"GET /topics/orders.dlq/letters/0/0/redrive HTTP/1.1" + ofAda + "\n", "nothing between", http.StatusBadGateway, time.Minute, 10 * time.Minute},
			{"POST /topics/orders.dlq/discard HTTP/1.1" + ofAda + aForm + "Content-Length: 10\n\nwhere=true", "nothing between", http.StatusBadGateway, time.Minute, 10 * time.Minute},
			{fmt.Sprintf("POST /api/v1/topics/orders.dlq/plan HTTP/1.1%sContent-Type: application/json\nContent-Length: %d\n\n%s", ofAda, len(where), where), `#kafka"`, http.StatusBadGateway, time.Minute, 10 * time.Minute},
		} {
			answer, took, text := says(t, connect(), test.request)
			if answer.StatusCode != test.code || took < test.least || took > test.most || !strings.Contains(text, test.want) {
				t.Errorf("%.60s: %d after %v, want %d after %v with %q: %s", test.request, answer.StatusCode, took, test.code, test.least, test.want, text)
			}
		}
	})
}

// A sender has 20 requests under way that may take long, over the API and the console together.
// Others are not held up, nor is what is answered at once.
func TestServer_BoundsLongRequestsOfASender(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 1)
		is.serve(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, operators)}})
		silent := is.silence()
		is.knowsTheLetter("Authorization", "Bearer ada")
		silent.Store(true)
		plan := func(who string) *http.Response {
			return send(t, is.Server, http.MethodPost, "/api/v1/topics/orders.dlq/plan", `{"filter":{"where":"true"}}`, "Authorization", "Bearer "+who)
		}
		form := func(who string) *http.Response {
			return send(t, is.Server, http.MethodGet, "/topics/orders.dlq/letters/0/0/redrive", "", "Authorization", "Bearer "+who)
		}
		reads := func(path string) func(string) *http.Response {
			return func(who string) *http.Response {
				return send(t, is.Server, http.MethodGet, path, "", "Authorization", "Bearer "+who)
			}
		}
		listed := reads("/api/v1/topics/orders.dlq/letters?where=true")
		var under sync.WaitGroup
		for i := range 20 {
			under.Go(func() {
				if answer := []func(string) *http.Response{plan, form, listed}[i%3]("ada"); answer.StatusCode != http.StatusBadGateway {
					t.Errorf("request %d under way: %d", i, answer.StatusCode)
				}
			})
		}
		time.Sleep(time.Second)
		for what, ask := range map[string]func(string) *http.Response{
			"a plan": plan, "a form": form, "a list by an expression": listed, "by keys": reads("/api/v1/topics/orders.dlq/letters?key=a"),
			"by headers": reads("/api/v1/topics/orders.dlq/letters?header=a"), "a page by an expression": reads("/topics/orders.dlq?where=true"),
		} {
			if answer := ask("ada"); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "10" {
				t.Errorf("%s beside 20: %d, %v", what, answer.StatusCode, answer.Header)
			}
		}
		if answer := send(t, is.Server, http.MethodGet, "/topics/orders.dlq", "", "Authorization", "Bearer ada"); answer.StatusCode != http.StatusOK {
			t.Errorf("a page: %d", answer.StatusCode)
		}
		under.Go(func() {
			if answer := plan("bob"); answer.StatusCode != http.StatusBadGateway {
				t.Errorf("another sender: %d", answer.StatusCode)
			}
		})
		under.Wait()
		silent.Store(false)
		is.within(10*time.Minute, "a plan is made", func() bool { return plan("ada").StatusCode == http.StatusOK })
		if answer := form("ada"); answer.StatusCode != http.StatusOK {
			t.Errorf("a form afterwards: %d", answer.StatusCode)
		}
	})
}

// Each way into the server counts for the rate of its sender: a page, as a request of the API does,
// the metrics, files and the description of the API. A form that read from the brokers did not
// count, nor did signing in: so tokens could be tried. Others are not held up.
func TestServer_BoundsTheRateOnAllPaths(t *testing.T) {
	t.Parallel()
	// Of a topic that ada may see a server that knows none yet would wait to hear. Probes are not
	// limited: an orchestrator would end the server.
	for _, test := range []struct{ method, path, body, token string }{
		{http.MethodGet, "/livez", "", ""},
		{http.MethodGet, "/readyz", "", ""},
		{http.MethodGet, "/api/v1/topics", "", "ada"},
		{http.MethodGet, "/api/v1/openapi.yaml", "", ""},
		{http.MethodGet, "/api/none", "", ""},
		{http.MethodGet, "/static/none", "", ""},
		{http.MethodGet, "/topics/orders.dlq", "", "ada"},
		{http.MethodGet, "/topics/orders.dlq/letters/1/0/redrive", "", "ada"},
		{http.MethodPost, "/topics/orders.dlq/discard", "do=begin", "ada"},
		{http.MethodPost, "/topics/orders.dlq/runs/x/abort", "do=begin", "ada"},
		{http.MethodGet, "/nowhere", "", "ada"},
		{http.MethodGet, "/", "", ""},
		{http.MethodGet, "/metrics", "", ""},
		{http.MethodGet, "/metrics", "", "ada"},
		{http.MethodGet, "/sign-in", "", ""},
		{http.MethodPost, "/sign-in", "token=x", ""},
		{http.MethodGet, "/sign-in/provider", "", ""},
		{http.MethodGet, "/sign-in/callback", "", ""},
		{http.MethodPost, "/sign-out", "", ""},
		{http.MethodPost, "/theme", "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := serve.New(serve.Config{Access: serve.Access{OpenMetrics: test.token == "", TokensFile: tokenFile(t, map[string]string{"ada": "[{role: operator, topics: [bills.dlq]}]", "bob": "[{role: viewer, topics: [bills.dlq]}]"})}}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			h := s.Handler()
			ask := func(path, from string) *httptest.ResponseRecorder {
				r := httptest.NewRequest(test.method, path, strings.NewReader(test.body))
				r.RemoteAddr = from
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				if test.token != "" {
					r.Header.Set("Authorization", "Bearer "+test.token)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			for i := range 200 {
				if w := ask(test.path, fmt.Sprintf("10.0.0.1:%d", i+1)); w.Code == http.StatusTooManyRequests {
					t.Fatalf("%s %s: request %d is refused", test.method, test.path, i)
				}
			}
			w := ask(test.path, "10.0.0.1:9")
			if strings.HasSuffix(test.path, "z") {
				if w.Code == http.StatusTooManyRequests {
					t.Errorf("%s is limited", test.path)
				}
				return
			}
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "requests a second: wait") {
				t.Errorf("%s %s, 201 times: %d, %v", test.method, test.path, w.Code, w.Header())
			}
			if answer := send(t, s, http.MethodGet, "/api/v1/topics", "", "Authorization", "Bearer "+test.token); test.token != "" && answer.StatusCode != http.StatusTooManyRequests {
				t.Errorf("the API, after %s: %d", test.path, answer.StatusCode)
			}
			if answer := send(t, s, http.MethodGet, "/api/v1/topics", "", "Authorization", "Bearer bob"); answer.StatusCode != http.StatusOK {
				t.Errorf("another sender, after %s: %d", test.path, answer.StatusCode)
			}
			time.Sleep(time.Second)
			if w := ask(test.path, "10.0.0.1:9"); w.Code == http.StatusTooManyRequests {
				t.Errorf("%s, a second later: %d", test.path, w.Code)
			}
		})
	}
}

// A sender of too many requests without credentials keeps no other user at the same address from
// signing in, nor those who are signed in from anything.
func TestServer_NobodyKeepsOthersFromSigningIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := serve.New(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, operators)}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		h := s.Handler()
		ask := func(method, path, body string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for _, c := range cookies {
				r.AddCookie(c)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		for range 201 {
			ask(http.MethodGet, "/api/v1/topics", "")
		}
		if w := ask(http.MethodGet, "/api/v1/topics", ""); w.Code != http.StatusTooManyRequests {
			t.Errorf("the API: %d", w.Code)
		}
		w := ask(http.MethodPost, "/sign-in", "token=ada")
		session := w.Result().Cookies()
		if w.Code != http.StatusSeeOther || len(session) == 0 {
			t.Fatalf("signing in: %d, %v", w.Code, session)
		}
		for range 201 {
			ask(http.MethodGet, "/sign-in", "")
		}
		if w := ask(http.MethodPost, "/theme", ""); w.Code != http.StatusTooManyRequests {
			t.Errorf("another user: %d", w.Code)
		}
		for _, path := range []string{"/theme", "/sign-out"} {
			if w := ask(http.MethodPost, path, "", session...); w.Code == http.StatusTooManyRequests {
				t.Errorf("%s of a user with a session: %d", path, w.Code)
			}
		}
	})
}

// A user follows 200 pages at most: others can follow theirs. Pages that are followed hold up
// nothing that takes long.
func TestServer_BoundsLivePagesOfASender(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := serve.New(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, operators)}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		h := s.Handler()
		follow := func(ctx context.Context, who string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Authorization", "Bearer "+who)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		ctx, leave := context.WithCancel(t.Context())
		var pages sync.WaitGroup
		for range 200 {
			pages.Go(func() {
				if w := follow(ctx, "ada"); w.Code != http.StatusOK {
					t.Errorf("a page: %d", w.Code)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		if w := follow(ctx, "ada"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "10" {
			t.Errorf("a page beside 200: %d, %v", w.Code, w.Header())
		}
		pages.Go(func() {
			if w := follow(ctx, "bob"); w.Code != http.StatusOK {
				t.Errorf("a page of another user: %d", w.Code)
			}
		})
		form := url.Values{"do": {"begin"}}
		if answer := send(t, s, http.MethodPost, "/topics/orders.dlq/discard", form.Encode(), "Authorization", "Bearer ada"); answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a form beside 200 pages: %d", answer.StatusCode)
		}
		leave()
		pages.Wait()
		ctx, leave = context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if w := follow(ctx, "ada"); w.Code != http.StatusOK {
			t.Errorf("a page afterwards: %d", w.Code)
		}
	})
}
