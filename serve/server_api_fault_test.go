package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// The sender of a request that is not as the description has it reads what is allowed, in the text
// of the problem, without looking at the description.
func TestServer_SaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	const topic, aTime = "/api/v1/topics/orders.dlq", "it has to be a time of RFC 3339, as in 2026-11-23T17:00:00Z"
	for _, test := range []struct {
		path, body, want string
	}{
		{"/letters?since=6h", "", "query.since: " + aTime},
		{"/plan", `{"filter":{"since":"6h"}}`, "body.filter.since: " + aTime},
		{"/letters?limit=0", "", "query.limit: at least 1"},
		{"/letters?limit=2000", "", "query.limit: at most 1000"},
		{"/letters?limit=ten", "", "query.limit: it has to be a whole number"},
		{"/letters/0/x", "", "path.offset: it has to be a whole number"},
		// A partition of 33 bits lost its highest ones: the request acted on another letter.
		{"/letters/4294967297/0", "", "path.partition: at most 2147483647"},
		{"/letters/4294967297/0/discard", `{"why":"sold out"}`, "path.partition: at most 2147483647"},
		{"/letters/4294967297/0/reopen", `{"why":"sold out"}`, "path.partition: at most 2147483647"},
		{"/letters/4294967297/0/redrive", "{}", "path.partition: at most 2147483647"},
		{"/export?all=perhaps", "", "query.all: it has to be true or false"},
		{"/retention?dry=1", "", "query.dry: there is no such parameter, and none at all"},
		{
			"/groups?classes=x&foo=1", "", "query.classes: there is no such parameter; allowed are class, fingerprint, group, reason, state, since, until, enteredSince, enteredUntil, partition, offset, key, header, attempts, where; " +
				"query.foo: there is no such parameter; allowed are class, fingerprint, group, reason, state, since, until, enteredSince, enteredUntil, partition, offset, key, header, attempts, where",
		},
		{"/plan", `{"pace":{"burst":-1,"tolerateShare":7},"maxAttempts":1000001}`, "body.maxAttempts: at most 1000000; body.pace.burst: at least 0; body.pace.tolerateShare: at most 1"},
		{"/plan", `{"target":{"topics":"a"}}`, "body.target.topics: there is no such field; allowed are force, keepTimestamp, topic, wait"},
		{"/plan", `{"edit":{"setHeaders":[{"key":"a","values":"b"}]}}`, "body.edit.setHeaders[0].values: there is no such field; allowed are key, value; body.edit.setHeaders[0]: the field value is required"},
		{"/discard", `{"why":""}`, "body.why: at least 1 character; body: the field expect is required"},
		{"/plan", `{"filter":{"partition":["a"]}}`, "body.filter.partition[0]: it has to be a whole number"},
		{"/plan", `{"filter":{"partition":[4294967297]}}`, "body: 4294967297 is out of range, or not written as a whole number"},
		{"/plan", `{"pace":{"windowMs":9223372036854775808}}`, "body: 9223372036854775808 is out of range, or not written as a whole number"},
		{"/plan", `{"pace":{"burst":1e400}}`, "body: 1e400 is out of range, or not written as a whole number"},
		{"/plan", `{`, "body: it is no JSON: unexpected end of JSON input"},
		{"/plan", `[]`, "body: expected object"},
	} {
		method := http.MethodGet
		if test.body != "" {
			method = http.MethodPost
		}
		if got := detailOf(t, send(t, s, method, topic+test.path, test.body)); got != test.want {
			t.Errorf("%s %s: %s\nwant %s", test.path, test.body, got, test.want)
		}
	}
	if got, want := detailOf(t, send(t, s, http.MethodPost, topic+"/plan", "a=b", "Content-Type", "text/plain")), `body: the Content-Type is "text/plain": it has to be application/json`; got != want {
		t.Errorf("a text: %s\nwant %s", got, want)
	}
	nothing := httptest.NewRequest(http.MethodPost, topic+"/plan", nil)
	nothing.Host, nothing.RemoteAddr = "localhost", "127.0.0.1:5000"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, nothing)
	if got, want := detailOf(t, w.Result()), "the request lacks its body: a JSON object, at least {}"; got != want {
		t.Errorf("nothing: %s\nwant %s", got, want)
	}
}

// detailOf returns the text of a problem with a request. Each of its errors is in it.
func detailOf(t *testing.T, answer *http.Response) string {
	t.Helper()
	var p struct {
		api.Problem
		Errors []struct{ Location, Message string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || p.Kind() != api.InvalidRequest {
		t.Errorf("%+v, %v", p, err)
	}
	for _, e := range p.Errors {
		if !strings.Contains(p.Detail, e.Location+": "+e.Message) {
			t.Errorf("%q lacks %+v", p.Detail, e)
		}
	}
	return p.Detail
}
