package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// A tab that was left open over a restart asks the server before that knows its topics. The answer
// was that there is no such topic, and followed it no more. Until it knows, it says so.
func TestServer_WaitsUntilItKnowsItsTopics(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	known := make(chan struct{})
	c.fake.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.SleepControl(func() { <-known })
		return nil, nil, false
	})
	s, _ := c.run(serve.Config{})
	h := s.Handler()
	for path, want := range map[string]string{"/api/v1/topics/orders.dlq": api.NotRunning.Type(), "/topics/orders.dlq": "the dead-letter topics are not known yet"} {
		early, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(early, http.MethodGet, path, nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
		h.ServeHTTP(w, r)
		if cancel(); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s before the topics are known: %d: %s", path, w.Code, w.Body)
		}
	}
	close(known)
	for _, path := range []string{"/api/v1/topics/orders.dlq", "/topics/orders.dlq"} {
		if answer := sendTo(t, h, http.MethodGet, path, ""); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	if got := kindOf(t, "no topic", sendTo(t, h, http.MethodGet, "/api/v1/topics/none.dlq", "")); got != api.NoTopic {
		t.Errorf("a topic that is none: %q", got)
	}
}
