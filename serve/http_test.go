package serve_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve"
)

// connection is a connection over which requests come one after the other.
type connection struct {
	*httptest.ResponseRecorder
	deadline time.Time // of writing
}

func (c *connection) SetWriteDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

// A request of the API must be answered in time. Its limit is not that of the next request on the
// connection.
func TestServer_LimitOfARequestEndsWithIt(t *testing.T) {
	t.Parallel()
	s, err := serve.New(serve.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{}
	ask := func(path string) {
		c.ResponseRecorder = httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
		s.Handler().ServeHTTP(c, r)
		if c.Code != http.StatusOK {
			t.Fatalf("%s: %d, %s", path, c.Code, c.Body)
		}
	}
	ask("/api/v1/topics")
	if left := time.Until(c.deadline); left < 30*time.Second || left > 2*time.Minute {
		t.Errorf("a request of the API may take %v", left)
	}
	ask("/livez")
	if left := time.Until(c.deadline); left < 10*time.Minute {
		t.Errorf("the next request may take %v", left)
	}
}

// Metrics are for viewers, and have the topics only on which the sender has a role. The probes are
// for all senders.
func TestServer_MetricsAreForViewersOfTheirTopics(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, map[string]string{"ada": "[{role: viewer}]", "bob": "[{role: admin, topics: [bills*]}]"})}})
	has := func(token, path string, code int, topics ...string) bool {
		var header []string
		if token != "" {
			header = []string{"Authorization", "Bearer " + token}
		}
		answer := send(t, s, http.MethodGet, path, "", header...)
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != code {
			return false
		}
		for _, topic := range []string{"orders.dlq", "bills.dlq"} {
			if strings.Contains(string(text), topic) != slices.Contains(topics, topic) {
				return false
			}
		}
		return true
	}
	eventually(t, "both topics are read", func() bool { return has("ada", "/metrics", http.StatusOK, "orders.dlq", "bills.dlq") })
	for _, test := range []struct {
		token, path string
		code        int
		topics      []string
	}{
		{"", "/metrics", http.StatusUnauthorized, nil},
		{"eve", "/metrics", http.StatusUnauthorized, nil},
		{"bob", "/metrics", http.StatusOK, []string{"bills.dlq"}},
		{"", "/livez", http.StatusOK, nil},
		{"", "/readyz", http.StatusOK, nil},
		{"", "/api/v1/openapi.yaml", http.StatusOK, nil},
		{"", "/api/v1/nothing", http.StatusNotFound, nil},
		// the address itself
		{"", "/topics/orders.dlq", http.StatusUnauthorized, []string{"orders.dlq"}},
	} {
		if !has(test.token, test.path, test.code, test.topics...) {
			t.Errorf("%s as %q: not %d with %v", test.path, test.token, test.code, test.topics)
		}
	}
}
