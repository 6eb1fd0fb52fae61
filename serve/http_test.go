package serve_test

import (
	"net/http"
	"net/http/httptest"
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
		r.Host = "localhost"
		s.Handler().ServeHTTP(c, r)
		if c.Code != http.StatusOK {
			t.Fatalf("%s: %d, %s", path, c.Code, c.Body)
		}
	}
	ask("/api/v1/topics")
	if left := time.Until(c.deadline); left < 30*time.Second || left > 2*time.Minute {
		t.Errorf("a request of the API may take %v", left)
	}
	ask("/metrics")
	if !c.deadline.IsZero() {
		t.Errorf("the next request has to end at %v", c.deadline)
	}
}
