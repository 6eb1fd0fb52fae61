package serve_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// breaks makes the brokers of a station close each connection, or answer nothing.
func (is *station) breaks() (down, frozen *atomic.Bool) {
	down, frozen = &atomic.Bool{}, &atomic.Bool{}
	is.k.Cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		is.k.Cluster.KeepControl()
		switch {
		case down.Load():
			return nil, errors.New("the broker is down"), true
		case frozen.Load():
			return nil, nil, true
		}
		return nil, nil, false
	})
	return down, frozen
}

// The brokers go down, or freeze. What needs them is a problem within the time of the request, in
// words on the console; all else is answered at once. When they are back all is as before.
func TestServer_AnswersWhileBrokersDoNot(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"down", "frozen"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 3)
				is.serve(serve.Config{RulesFile: rules(t, hourly), Topics: []serve.Topic{{Match: "*", Retention: &serve.Retention{Every: 1000 * time.Hour}}}})
				is.within(time.Minute, "the letters are known", func() bool {
					all := ask[[]api.Topic](is, "/topics")
					return len(all) == 1 && all[0].Open == 3
				})
				down, frozen := is.breaks()
				down.Store(how == "down")
				frozen.Store(how == "frozen")
				is.answersOf(t)
				down.Store(false)
				frozen.Store(false)
				is.within(10*time.Minute, "all is as before", func() bool {
					var l api.LetterDetail
					return is.ask(http.MethodGet, "/topics/orders.dlq/letters/0/0", "", &l) == http.StatusOK && l.State == "" && len(l.Ledger) == 0
				})
				if topic, runs := ask[api.Topic](is, "/topics/orders.dlq"), ask[[]api.Run](is, "/runs"); topic.Open != 3 || len(runs) != 0 {
					t.Errorf("the topic is %+v, and there are runs %+v", topic, runs)
				}
				if history := ask[[]api.RuleEvent](is, "/rules/outage/history"); len(history) != 0 {
					t.Errorf("the rule was paused: %+v", history)
				}
			})
		})
	}
}

// answers asks the API with a body, or for a page with a form, and returns the page. The answer is
// a problem of one of some kinds, and comes in time.
func (is *station) answers(method, path, body string, form url.Values, most time.Duration, kinds ...api.Kind) (page string) {
	is.t.Helper()
	began := time.Now()
	var w *httptest.ResponseRecorder
	if strings.HasPrefix(path, "/api/") {
		if kind := kindOf(is.t, path, send(is.t, is.Server, method, path, body)); !slices.Contains(kinds, kind) {
			is.t.Errorf("%s %s answers %q", method, path, kind)
		}
	} else if w, page = (&person{t: is.t, s: is.Server}).do(method, path, form); !slices.ContainsFunc(kinds, func(k api.Kind) bool { return api.Statuses()[k] == w.Code }) {
		is.t.Errorf("%s %s answers %d", method, path, w.Code)
	}
	if took := time.Since(began); took > most {
		is.t.Errorf("%s %s is answered after %v", method, path, took)
	}
	return page
}

// answersOf asks for everything at once while the brokers do not answer. A connection that was
// accepted, and on which nothing comes, takes its time to be given up: less than the minute for
// which the server can still send the answer.
func (is *station) answersOf(t *testing.T) {
	t.Helper()
	const giveUp = time.Minute
	const topic, usual, long = "/topics/orders.dlq", 30*time.Second + giveUp, 10*time.Minute + giveUp
	var all sync.WaitGroup
	defer all.Wait()
	get, post := http.MethodGet, http.MethodPost
	for _, r := range []struct {
		method, path, body string
		most               time.Duration
	}{
		{get, topic + "/letters/0/0", "", usual},
		{get, topic + "/letters?where=true", "", usual},
		{get, topic + "/runs/none", "", usual},
		{get, topic + "/runs/none/events", "", usual},
		{get, topic + "/export", "", long},
		{get, topic + "/retention", "", long},
		{get, "/rules/outage/topics/orders.dlq/dry-run", "", usual},
		{post, "/rules/outage/topics/orders.dlq/pause", `{}`, usual},
		{post, topic + "/plan", `{}`, long},
		{post, topic + "/runs", `{}`, long},
		{post, topic + "/discard", `{"why":"x","expect":3}`, long},
		{post, topic + "/letters/0/0/redrive", `{}`, long},
		{post, topic + "/letters/0/0/discard", `{"why":"x"}`, long},
		{post, topic + "/letters/0/0/reopen", `{"why":"x"}`, long},
		{post, topic + "/retention", "", long},
		{post, topic + "/runs/none/abort", `{}`, long},
		{post, topic + "/runs/none/resume", `{}`, long},
	} {
		all.Go(func() { is.answers(r.method, "/api/v1"+r.path, r.body, nil, r.most, api.Kafka, api.Timeout) })
	}
	begin := url.Values{"do": {"begin"}, "key": {"k"}, "why": {"w"}, "expect": {"3"}}
	for _, r := range []struct {
		path string
		form url.Values
		most time.Duration
	}{
		{topic + "/letters/0/0", nil, usual},
		{topic + "/letters/0/1", nil, usual},
		{topic + "/letters/0/2", nil, usual},
		{topic + "?where=true", nil, usual},
		{topic + "/runs/none", nil, usual},
		{topic + "/redrive", begin, long},
		{topic + "/discard", begin, long},
		{topic + "/letters/0/0/discard", begin, long},
		{topic + "/letters/0/0/reopen", begin, long},
		{"/rules/outage/topics/orders.dlq", begin, long},
	} {
		all.Go(func() {
			method := http.MethodGet
			if r.form != nil {
				method = http.MethodPost
			}
			page := is.answers(method, r.path, "", r.form, r.most, api.Kafka, api.Timeout)
			if !strings.Contains(page, "brokers did not answer") && !strings.Contains(page, "dlq: ") && !strings.Contains(page, "redrive: ") {
				t.Errorf("%s %s says %s", method, r.path, page)
			}
		})
	}
	synctest.Wait() // they wait for the brokers
	for _, path := range []string{
		"/", topic, topic + "?class=http.503&state=all", "/runs", "/rules", "/audit", "/livez", "/metrics",
		"/api/v1/topics", "/api/v1" + topic, "/api/v1" + topic + "/letters", "/api/v1" + topic + "/groups", "/api/v1" + topic + "/classes", "/api/v1/runs", "/api/v1" + topic + "/runs", "/api/v1/rules", "/api/v1/rules/outage/history",
	} {
		began, most := time.Now(), time.Duration(0)
		// The first list of letters waits for what they say, and the next ones do without.
		if path == topic {
			most = time.Second
		}
		w, text := visit(t, is.Server, httptest.NewRequest(http.MethodGet, path, nil))
		if took := time.Since(began); w.Code != http.StatusOK || took > most {
			t.Errorf("%s: %d after %v: %s", path, w.Code, took, text)
		}
	}
	is.within(5*time.Minute, "the topic says that something is missing", func() bool { return ask[api.Topic](is, topic).Problem != "" })
	words(t, is.Server, "/", "Something is missing")
}
