package serve_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/serve"
)

// What an address has wrong is named in words, with what is allowed.
func TestServer_ConsoleBadInputIsAPage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	c.fail("orders", "decode", 3)
	opens(t, c.clientOf(s, ""), "orders.dlq", 3)
	ann := &person{t: t, s: s}
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/topics/orders.dlq?since=yesterday":         {400, `"yesterday" is not a time: as in 6h or 2d`},
		"/topics/orders.dlq?state=odd":               {400, `"odd" is no state of letters`},
		"/topics/orders.dlq?since=1h&until=2h":       {400, "since is not before until"},
		"/topics/orders.dlq/letters/1/-5":            {400, "1/-5 is no letter"},
		"/topics/orders.dlq/letters/9999999999/5":    {400, "is no letter"},
		"/topics/orders.dlq/letters/1/404":           {404, "there is no letter"},
		"/topics/orders.dlq/letters/1/0?value=image": {400, `not shown as "image"`},
		"/topics/orders.dlq/redrive?state=failed":    {400, "Only open letters can be acted on"},
		"/topics/other.dlq":                          {404, `There is no dead-letter topic "other.dlq" that local may see`},
		"/topics/other.dlq/runs/none":                {404, `There is no dead-letter topic "other.dlq" that local may see`},
		"/rules/none/topics/other.dlq":               {404, `There is no dead-letter topic "other.dlq" that local may see`},
		"/audit?topic=other.dlq":                     {404, `There is no dead-letter topic "other.dlq" that local may see`},
		"/nowhere":                                   {404, "There is no such page"},
	} {
		if w, text := ann.do(http.MethodGet, path, nil); w.Code != want.status || !strings.Contains(text, want.text) {
			t.Errorf("%s: %d, want %d with %q: %s", path, w.Code, want.status, want.text, text)
		}
	}
	if w, _ := ann.do(http.MethodGet, "/api/v1/nowhere", nil); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "<") {
		t.Errorf("an unknown path of the API is answered with a page: %d", w.Code)
	}
}

// A form without a filter has a short address, with and without a script.
func TestServer_ConsoleAddressesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	opens(t, c.clientOf(s, ""), "orders.dlq", 0)
	const typed, want = "/topics/orders.dlq?state=&class=http.503&group=&since=6h", "/topics/orders.dlq?class=http.503&since=6h"
	if w, _ := (&person{t: t, s: s}).do(http.MethodGet, typed, nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
		t.Errorf("a browser is sent to %q with %d", w.Header().Get("Location"), w.Code)
	}
	r := httptest.NewRequest(http.MethodGet, typed, nil)
	r.Header.Set("HX-Request", "true")
	if w, _ := visit(t, s, r); w.Code != http.StatusOK || w.Header().Get("HX-Push-Url") != want {
		t.Errorf("htmx shows %q with %d", w.Header().Get("HX-Push-Url"), w.Code)
	}
}

// A page has its stream at its own address, and in it the cards of the runs that go on.
func TestServer_ConsolePagesAreFollowed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(60)
	s, _ := c.run(serve.Config{})
	opens(t, c.clientOf(s, ""), "orders.dlq", 60)
	to := (&person{t: t, s: s}).confirms("/topics/orders.dlq/redrive?rate=0.1&ramp=none", map[string]string{"why": "fixed"})
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	for path, want := range map[string][]string{
		"/topics/orders.dlq?since=6h&seen=old.old": {"event: live", `data: <p class="says">`, "Older letters", "event: runs", "of 60 sent"},
		"/audit?seen=old.old":                      {"event: live", "1 decision", "event: runs", "Run <code>" + to[strings.LastIndex(to, "/")+1:]},
	} {
		if kind, text := streamOf(t, h.URL+path, want); kind != "text/event-stream" || !hasAll(text, want) {
			t.Errorf("the stream of %s is %s, or lacks one of %q: %s", path, kind, want, text)
		}
	}
}

// streamOf follows a page until its stream has some texts, and returns what came.
func streamOf(t *testing.T, address string, want []string) (kind, came string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text strings.Builder
	for lines := bufio.NewScanner(answer.Body); !hasAll(text.String(), want) && lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
	}
	return answer.Header.Get("Content-Type"), text.String()
}

func hasAll(text string, want []string) bool {
	for _, one := range want {
		if !strings.Contains(text, one) {
			return false
		}
	}
	return true
}

// Whatever is wrong with the form of a run is named in words, with the plan as it is now, and
// nothing begins. A form that was refused gets another key.
func TestServer_ConsoleBadFormBeginsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(3)
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 3)
	ann := &person{t: t, s: s}
	const topic, letter = "/topics/orders.dlq/redrive", "/topics/orders.dlq/letters/0/0/redrive"
	form := func(path string) url.Values {
		_, fields := ann.fills(ann.opens(path), map[string]string{"expect": "3"})
		return fields
	}
	ann.opens(topic+"?rate=none", "Look twice: a limit of the run is off.")
	for name, test := range map[string]struct {
		path, set, to string
		status        int
		text          string
	}{
		"no number":             {topic, "expect", "", 400, "is not the number of letters: nothing was done"},
		"a word":                {topic, "expect", "all", 400, `"all" is not the number of letters`},
		"no key":                {topic, "key", "", 400, "not one of this page: nothing was done"},
		"a long reason":         {topic, "why", strings.Repeat("x", 4097), 400, "in the address"},
		"a rate of zero":        {topic, "rate", "0", 400, `Letters a second: "0" is not a number above 0`},
		"an odd rate":           {topic, "rate", "NaN", 400, `Letters a second: "NaN" is not a number above 0`},
		"a long ramp":           {topic, "ramp", "9999h", 400, `Ramp: "9999h" is not a time`},
		"a state":               {topic, "state", "failed", 400, "Only open letters can be acted on"},
		"an odd time":           {topic, "before", "once", 400, `"once" is not a time`},
		"no header":             {letter, "set", "currency", 400, "is not a header"},
		"a patch of no object":  {letter, "patch", "[1]", 422, "patch is no JSON object"},
		"a value that is large": {letter, "text", strings.Repeat("x", 4<<20), 413, "too large"},
	} {
		fields := form(test.path)
		fields.Set(test.set, test.to)
		for _, do := range []string{"plan", "begin"} {
			fields.Set("do", do)
			if test.path == topic && do == "plan" {
				continue
			}
			w, text := ann.do(http.MethodPost, test.path, fields)
			if w.Code != test.status || !strings.Contains(text, test.text) || test.path == letter && strings.Contains(text, "Send 1 letter") {
				t.Errorf("%s, to %s: %d, want %d with %q: %s", name, do, w.Code, test.status, test.text, text)
			}
		}
	}
	fields := form(topic)
	key := fields.Get("key")
	fields.Set("expect", "7")
	w, text := ann.do(http.MethodPost, topic, fields)
	if _, again := ann.fills(w.Body.String(), nil); w.Code != http.StatusConflict || !strings.Contains(text, "3 letters of orders.dlq would be sent, and 7 are expected: nothing was done") || again.Get("key") == key || again.Get("key") == "" {
		t.Errorf("a refused run: %d, %v", w.Code, again)
	}
	// perhaps a run began before an error of the brokers: the same key finds out
	fields.Set("expect", "3")
	fault := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.InvalidRecord, Count: -1})
	w, text = ann.do(http.MethodPost, topic, fields)
	if _, again := ann.fills(w.Body.String(), nil); w.Code != http.StatusBadGateway || again.Get("key") != key {
		t.Errorf("after an error of the brokers the key is %q, want %q: %d: %s", again.Get("key"), key, w.Code, text)
	}
	fault.Remove()
	if runs, err := cl.Runs(t.Context(), "orders.dlq", 0); err != nil || len(runs) != 0 {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
}

// What a user types is shown as a diff, and is what the letter's copy carries. The options of the
// plan are those of the run.
func TestServer_ConsoleTypedLetterIsSent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(1)
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	c.write("orders", "decode", &kgo.Record{Value: []byte("one\ntwo\nthree"), Headers: []kgo.RecordHeader{{Key: "old", Value: []byte("v")}}})
	opens(t, cl, "orders.dlq", 2)
	ann := &person{t: t, s: s}
	const path = "/topics/orders.dlq/letters/1/0/redrive"
	ann.opens(path, "Letter 1/0 of orders.dlq", "Set headers", "Patch the value", "Or type the value", "one two three", "Show what changes, and plan")
	// as browsers send lines
	typed := url.Values{"do": {"plan"}, "set": {"currency: EUR\r\nx: a: b"}, "unset": {"old"}, "text": {"one\r\n2\r\nthree"}, "rate": {"5"}, "ramp": {"none"}, "window": {"200ms"}}
	w, text := ann.do(http.MethodPost, path, typed)
	if !hasAll(text, []string{"removed: - two", "added: + 2", "removed: - old: v", "added: + currency: EUR", "added: + x: a: b"}) {
		t.Errorf("the diff: %d: %s", w.Code, text)
	}
	action, fields := ann.fills(w.Body.String(), map[string]string{"expect": "1"})
	if w, text = ann.do(http.MethodPost, action, fields); w.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", w.Code, text)
	}
	runs, err := cl.Runs(t.Context(), "orders.dlq", 0)
	if err != nil || len(runs) != 1 || runs[0].Pace.Rate != 5 || runs[0].Pace.RampMs > 0 || runs[0].Pace.WindowMs != 200 {
		t.Fatalf("the runs are %+v, %v", runs, err)
	}
	ends(t, cl, runs[0])
	l, err := cl.Letter(t.Context(), "orders.dlq", 1, 0)
	if err != nil || len(l.Ledger) == 0 || l.Ledger[0].Target == nil {
		t.Fatalf("the letter is %+v, %v", l, err)
	}
	var sent *kgo.Record
	for r := c.reader(l.Ledger[0].Target.Topic); sent == nil && t.Context().Err() == nil; {
		r.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) { sent = r })
	}
	carries := map[string]string{}
	for _, h := range sent.Headers {
		carries[h.Key] = string(h.Value)
	}
	if _, old := carries["old"]; string(sent.Value) != "one\n2\nthree" || carries["currency"] != "EUR" || carries["x"] != "a: b" || old {
		t.Errorf("what was sent is %q, with %q", sent.Value, carries)
	}
	// A value as it was shown is no change, and an empty one is one.
	for text, want := range map[string]bool{`{"n":0}`: false, "": true} {
		w, page := ann.do(http.MethodPost, "/topics/orders.dlq/letters/0/0/redrive", url.Values{"do": {"plan"}, "text": {text}})
		if got := strings.Contains(page, "What changes"); w.Code != http.StatusOK || got != want {
			t.Errorf("with the value %q something changes: %v, want %v: %s", text, got, want, page)
		}
	}
}
