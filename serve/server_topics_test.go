package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// A tab that was left open over a restart asks the server before that knows its topics. The answer
// was that there is no such topic, and followed it no more.
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
	early, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(early, http.MethodGet, "/api/v1/topics/orders.dlq", nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	h.ServeHTTP(w, r)
	if got := kindOf(t, "before the topics are known", w.Result()); got != api.NotRunning {
		t.Errorf("before the topics are known: %q", got)
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

// The console says the same to people.
func TestServer_ConsoleSaysThatTopicsAreNotKnownYet(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	s, err := serve.New(serve.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/topics/orders.dlq", nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	s.Handler().ServeHTTP(answer, r)
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "the dead-letter topics are not known yet") {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}

// A topic without a ledger looked well: nothing can be brought back, discarded or noted on it.
func TestServer_ProblemNamesALedgerThatIsMissing(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "bills")
		k.CreateTopic("orders", 1)
		k.CreateTopic("orders.dlq", 1)
		is.serve(serve.Config{})
		is.within(time.Minute, "both are known", func() bool {
			all := ask[[]api.Topic](is, "/topics")
			return len(all) == 2 && all[0].Known != nil && all[1].Known != nil
		})
		if is := ask[api.Topic](is, "/topics/orders.dlq"); !strings.Contains(is.Problem, "has no ledger: create the topic orders.dlq.ledger") {
			t.Errorf("the problem is %q", is.Problem)
		}
		if is := ask[api.Topic](is, "/topics/bills.dlq"); is.Problem != "" {
			t.Errorf("the problem of a topic that has one is %q", is.Problem)
		}
	})
}
