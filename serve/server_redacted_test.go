package serve_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// Redriving is no way around what the server hides: not by a target that a user chose, and not by a
// mark that comes back as a value.
func TestServer_RedrivingShowsNothingThatIsHidden(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{Redact: serve.Redact{Paths: []string{"card"}}})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	c.fail("orders", "decode", 1)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 1`)
	before := c.Held("bills")
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
	if after := c.Held("bills"); after != before {
		t.Errorf("%d records came to bills", after-before)
	}
}

// Editing is no way around what the server hides: a pattern that knows what stands around a secret
// does not fit any more when that is changed.
func TestServer_EditingShowsNothingThatIsHidden(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{Redact: serve.Redact{Patterns: []string{`card","number":"[0-9]+`, `"kind":"iban","number":"[0-9]+"`}}})
	const secret = "4111222233334444"
	now := time.Now()
	for _, kind := range []string{"card", "iban", "free"} {
		c.placed(headers.Meta{Class: "decode", Reason: headers.ReasonTerminal, Group: "billing", FirstFailedAt: now, FailedAt: now}, now, `{"kind":"`+kind+`","number":"`+secret+`","n":1}`)
	}
	opens(t, c.clientOf(s, ""), "orders.dlq", 3)
	for _, test := range []struct{ letter, edit, want string }{
		{"0", `patch={"kind":"x"}`, `"kind": "x"`},
		{"1", `patch={"kind":"x"}`, "[redacted]"}, // nothing is left that a patch could change
		{"0", `patch={"n":7}`, `"n": 7`},
	} {
		form, err := url.ParseQuery("do=plan&" + test.edit)
		if err != nil {
			t.Fatal(err)
		}
		_, text := (&person{t: t, s: s}).do(http.MethodPost, "/topics/orders.dlq/letters/0/"+test.letter+"/redrive", form)
		if strings.Contains(text, secret) || !strings.Contains(text, test.want) {
			t.Errorf("letter %s with %s, want %q: %s", test.letter, test.edit, test.want, text)
		}
	}
	form := url.Values{"do": {"plan"}, "patch": {`{"kind":"x"}`}}
	if _, text := (&person{t: t, s: s}).do(http.MethodPost, "/topics/orders.dlq/letters/0/2/redrive", form); !strings.Contains(text, secret) || !strings.Contains(text, `"kind": "x"`) {
		t.Errorf("what is not hidden is not shown: %s", text)
	}
}
