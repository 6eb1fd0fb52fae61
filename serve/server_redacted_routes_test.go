package serve_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// secrets are what the configuration of the test hides: by a path, by a header's name, by a
// pattern; and a part of an error, which may quote a letter.
var secrets = []string{"4111222233334444", "s3cr3t-token", "hunter42", "ends at"}

var hidesSecrets = serve.Redact{Paths: []string{"..card"}, Headers: []string{"x-token"}, Patterns: []string{"hunter[0-9]+", "ends at"}}

var (
	inBase64 = regexp.MustCompile(`[A-Za-z0-9+/]{8,}={0,2}`)
	inDump   = regexp.MustCompile(`(?m)^[0-9a-f]{8}  .*\|(.*)\|$`)
)

// leaked returns the secrets that an answer has, in whatever form.
func leaked(body string) (all []string) {
	text := html.UnescapeString(body)
	forms := []string{body, text}
	for _, token := range inBase64.FindAllString(body, -1) {
		if data, err := base64.StdEncoding.DecodeString(token); err == nil {
			forms = append(forms, string(data))
		}
	}
	var dump strings.Builder
	for _, line := range inDump.FindAllStringSubmatch(text, -1) {
		dump.WriteString(line[1])
	}
	forms = append(forms, dump.String())
	for line := range strings.Lines(body) { // JSON may escape any character
		var v any
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &v) == nil {
			forms = append(forms, fmt.Sprint(v))
		}
	}
	for _, s := range secrets {
		for _, form := range forms {
			if strings.Contains(form, s) {
				all = append(all, s)
				break
			}
		}
	}
	return all
}

// secretive writes letters of class decode that have secrets in all their parts: the value of the
// first is JSON, of the second text, of the third bytes.
func (c *cluster) secretive() {
	c.T.Helper()
	now := time.Now()
	for i, value := range []string{
		`{"card":"4111222233334444","deep":[{"CARD":4111222233334444,"note":"hunter42"}],"text":"{\"card\":\"4111222233334444\"}"}`,
		`no JSON, but "card": 4111222233334444 of hunter42`,
		"\xff\x00 bytes of hunter42 and hunter42",
	} {
		r := &kgo.Record{Topic: "orders", Partition: int32(i), Offset: 1000 + int64(i), Key: []byte(`{"card":"4111222233334444","n":"hunter42"}`), Value: []byte(value), Headers: []kgo.RecordHeader{
			{Key: "X-Token", Value: []byte("s3cr3t-token")}, {Key: "note", Value: []byte("of hunter42")}, {Key: "json", Value: []byte(`{"card":"4111222233334444"}`)}, {Key: "hunter42", Value: []byte("\xffhunter42")},
		}}
		bury(c.T, c.Client, r, headers.Meta{
			Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: r.Partition, Offset: r.Offset}, Group: "billing", Attempts: 2, Class: "decode", Fingerprint: "f",
			Message: "cannot decode hunter42", Stack: "decode(hunter42)\n\tmain.go:7", Reason: headers.ReasonTerminal, FirstFailedAt: now, FailedAt: now, Version: "v7",
			History: []headers.Attempt{{Number: 1, Class: "decode", At: now, Verdict: "retry", Message: "first hunter42"}, {Number: 2, Class: "decode", At: now, Verdict: "terminal", Message: "then hunter42"}},
		})
	}
}

// shapeOf returns a route without the names in it.
func shapeOf(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		switch parts[i-1] {
		case "topics", "runs", "rules", "letters":
			parts[i] = "*"
			if parts[i-1] == "letters" && i+1 < len(parts) {
				parts[i+1] = "*"
			}
		}
	}
	return method + " " + strings.Join(parts, "/")
}

// What the configuration hides is in no answer: not in those of the API, whatever the route, and
// not in the pages, whatever the view; not in texts that people wrote, nor in those of errors.
func TestServer_NoRouteShowsWhatIsHidden(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	var broken atomic.Bool
	broken.Store(true)
	c.service(&broken, &atomic.Int64{})
	if err := c.Client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("hunter42"), Value: []byte(`{"card":"4111222233334444"}`)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s, _ := c.run(serve.Config{
		Redact: hidesSecrets, RulesFile: rules(t, "rules: [{name: outage, topics: 'orders*', classes: [http.*], cool-down: 1h}]"),
		Topics: []serve.Topic{{Match: "*", Retention: &serve.Retention{MaxCount: 1000}}},
	})
	c.secretive()
	prune := ledgerrecord.Run("orders.dlq.ledger", "prune/20261123T170000.000Z-1", []byte(`{"v":1,"at":"2026-11-23T17:00:00Z","by":"ada","why":"of hunter42","archive":"s3://a/hunter42/","error":"dial tcp 10.1.2.3:9092: no hunter42","until":{},"letters":1}`))
	if err := c.Client.ProduceSync(t.Context(), prune).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 4)
	find := func(class string) (places []string) {
		page, err := cl.Letters(t.Context(), "orders.dlq", api.Filter{Class: []string{class}, State: []string{"open", "discarded", "failed", "succeeded", "redriven"}}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Letters {
			places = append(places, fmt.Sprintf("%d/%d", l.Partition, l.Offset))
		}
		return places
	}
	broken.Store(false)
	run, err := cl.Start(t.Context(), "orders.dlq", api.RunRequest{Filter: api.Filter{Class: []string{"http.503"}}, RunOptions: api.RunOptions{Why: "for hunter42", Pace: quick}}, "")
	if err != nil {
		t.Fatal(err)
	}
	ends(t, cl, run)
	letters := append(find("decode"), find("http.503")...)
	if len(letters) != 4 {
		t.Fatalf("the letters are %v", letters)
	}
	const v1, topic = "/api/v1", "/topics/orders.dlq"
	type request struct{ method, path, body string }
	var all []request
	read := func(paths ...string) {
		for _, p := range paths {
			all = append(all, request{http.MethodGet, p, ""})
		}
	}
	post := func(path, body string) { all = append(all, request{http.MethodPost, path, body}) }
	post(v1+topic+"/discard", `{"why":"like hunter42","expect":3,"filter":{"class":["decode"]}}`)
	post(v1+topic+"/letters/"+letters[0]+"/reopen", `{"why":"not hunter42"}`)
	post(v1+topic+"/letters/"+letters[1]+"/reopen", `{"why":"not hunter42"}`)
	post(v1+topic+"/letters/"+letters[0]+"/discard", `{"why":"again hunter42"}`)
	post(v1+topic+"/letters/"+letters[0]+"/discard", `{"why":"again hunter42"}`)
	post(v1+topic+"/letters/"+letters[0]+"/reopen", `{"why":"not hunter42"}`)
	post(v1+"/rules/outage/topics/orders.dlq/pause", `{"why":"hunter42"}`)
	read(v1+"/topics", v1+topic, v1+topic+"/consumers", v1+topic+"/audit", v1+topic+"/groups", v1+topic+"/classes", v1+topic+"/values?by=value.card", v1+topic+"/values?by=header:X-Token", v1+topic+"/letters", v1+topic+"/letters?where="+url.QueryEscape(`text contains "bytes"`), v1+topic+"/export?all=true",
		v1+"/runs", v1+topic+"/runs", v1+topic+"/runs/"+run.ID, v1+topic+"/runs/"+run.ID+"/events", v1+topic+"/retention", v1+"/rules", v1+"/rules/outage/history", v1+"/rules/outage/topics/orders.dlq/dry-run",
		"/", topic, topic+"?state=all", topic+"?where="+url.QueryEscape(`value.card > 1`), topic+"/runs/"+run.ID, "/runs", "/rules", "/rules/outage/topics/orders.dlq", "/audit", "/metrics",
		topic+"/redrive", topic+"/discard", topic+"/whom?by=value.card", topic+"/whom?by=header:X-Token", v1+"/topics/hunter42", topic+"/letters/1/404", topic+"/letters/1/404/redrive")
	post(topic+"/redrive", "do=plan&patch="+url.QueryEscape(`{"n":7}`)+"&set=a:b")
	for _, at := range letters {
		page := topic + "/letters/" + at
		read(v1+page, page, page+"?value=json", page+"?value=text", page+"?value=hex", page+"/redrive", page+"/discard", page+"/reopen")
		post(page+"/redrive", "do=plan&patch="+url.QueryEscape(`{"n":7}`)+"&set=a:b")
		post(page+"/redrive", "do=plan&unset=note")
		post(v1+page+"/redrive", `{"edit":{"patch":{"n":7}},"target":{"topic":"nowhere","wait":true}}`)
	}
	post(v1+topic+"/plan", `{"filter":{"where":"value.card > 1"}}`)
	post(v1+topic+"/plan", `{"filter":{"class":["decode"]},"edit":{"patch":{"n":7}}}`)
	post(v1+topic+"/runs", `{"filter":{"class":["decode"]},"expect":77,"why":"hunter42"}`)
	post(v1+topic+"/runs/"+run.ID+"/abort", `{"why":"hunter42"}`)
	post(v1+topic+"/runs/"+run.ID+"/resume", `{}`)
	post(v1+"/rules/outage/topics/orders.dlq/resume", `{"why":"hunter42"}`)
	post(v1+topic+"/retention", "")
	asked := map[string]bool{}
	for _, r := range all {
		var answer *http.Response
		if r.method == http.MethodPost && !strings.HasPrefix(r.path, v1) {
			form, err := url.ParseQuery(r.body)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := (&person{t: t, s: s}).do(r.method, r.path, form)
			answer = w.Result()
		} else {
			answer = send(t, s, r.method, r.path, r.body)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || len(body) == 0 && answer.StatusCode != http.StatusNoContent {
			t.Errorf("%s %s: %d without a body, %v", r.method, r.path, answer.StatusCode, err)
		}
		if has := leaked(string(body)); len(has) > 0 {
			t.Errorf("%s %s: %d shows %q: %s", r.method, r.path, answer.StatusCode, has, body)
		}
		asked[shapeOf(r.method, r.path)] = true
	}

	words(t, s, "/audit", "of [redacted]", "s3://a/[redacted]/", "dial tcp: no [redacted]")
	// the readers do see what is not hidden
	for _, want := range []string{"cannot decode [redacted]", "first [redacted]", "decode([redacted])", "of [redacted]", "v7"} {
		if body := get(t, s, topic+"/letters/"+letters[0]) + get(t, s, topic+"/letters/"+letters[1]) + get(t, s, topic+"/letters/"+letters[2]); !strings.Contains(body, want) {
			t.Errorf("the letters' pages lack %q", want)
		}
	}
	operations := operationsOf(t, s)
	for id, route := range operations {
		if !asked[shapeOf(route[0], route[1])] {
			t.Errorf("operation %s is not in this table", id)
		}
	}
}
