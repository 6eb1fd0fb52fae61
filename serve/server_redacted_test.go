package serve_test

import (
	"net/http"
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// Redriving is no way around what the server hides: not by a target that somebody chose, and not by
// a mark that comes back as a value.
func TestServer_RedrivingShowsNothingThatIsHidden(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{Redact: serve.Redact{Paths: []string{"card"}}})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	c.fail("orders", "decode", 1)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 1`)
	before := c.held("bills")
	for _, test := range []struct {
		path, body string
		want       api.Kind
	}{
		{"/plan", `{"target":{"topic":"bills"}}`, api.Redacted},
		{"/runs", `{"target":{"topic":"bills"}}`, api.Redacted},
		{"/letters/1/0/redrive", `{"target":{"topic":"bills","force":true}}`, api.Redacted},
		{"/letters/1/0/redrive", `{"edit":{"value":{"text":"{\"card\":\"[redacted]\"}"}}}`, api.BadEdit},
		{"/letters/1/0/redrive", `{"edit":{"patch":{"card":"[redacted]"}}}`, api.BadEdit},
		{"/letters/1/0/redrive", `{"edit":{"setHeaders":[{"key":"a","value":{"text":"[redacted]"}}]}}`, api.BadEdit},
	} {
		if got := kindOf(t, test.path, send(t, s, http.MethodPost, "/api/v1/topics/orders.dlq"+test.path, test.body)); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.path, test.body, got, test.want)
		}
	}
	if after := c.held("bills"); after != before {
		t.Errorf("%d records came to bills", after-before)
	}
}
