package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve"
)

// person is a user with a browser that runs no script.
type person struct {
	t       *testing.T
	s       *serve.Server
	cookies []*http.Cookie
}

func (p *person) do(method, path string, fields url.Values) (*httptest.ResponseRecorder, string) {
	p.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(fields.Encode()))
	if fields != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range p.cookies {
		r.AddCookie(c)
	}
	return visit(p.t, p.s, r)
}

// signIn returns a user with a token.
func signIn(t *testing.T, s *serve.Server, token string) *person {
	t.Helper()
	p := &person{t: t, s: s}
	w, text := p.do(http.MethodPost, "/sign-in", url.Values{"token": {token}})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("signing in as %s: %d: %s", token, w.Code, text)
	}
	p.cookies = w.Result().Cookies()
	return p
}

// opens shows a page, which has to have some words.
func (p *person) opens(path string, want ...string) (body string) {
	p.t.Helper()
	w, text := p.do(http.MethodGet, path, nil)
	if w.Code != http.StatusOK {
		p.t.Fatalf("%s: %d: %s", path, w.Code, text)
	}
	for _, one := range want {
		if !strings.Contains(text, one) {
			p.t.Errorf("%s lacks %q: %s", path, one, text)
		}
	}
	return w.Body.String()
}

// fills returns the form of a page that acts, with some fields filled in.
func (p *person) fills(body string, with map[string]string) (action string, fields url.Values) {
	p.t.Helper()
	return formIn(p.t, body, func(n *html.Node) bool { return attribute(n, "class") == "act" }, with)
}

// formIn returns the first form of a page that is the right one, with some fields filled in.
func formIn(t *testing.T, body string, is func(*html.Node) bool, with map[string]string) (action string, fields url.Values) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data != "form" || !is(n) {
			continue
		}
		fields = url.Values{}
		for d := range n.Descendants() {
			switch name := attribute(d, "name"); {
			case d.Type != html.ElementNode || name == "" || attribute(d, "type") == "checkbox":
			case d.Data == "textarea" && d.FirstChild != nil:
				fields.Add(name, d.FirstChild.Data)
			default:
				fields.Add(name, attribute(d, "value"))
			}
		}
		for key, value := range with {
			fields.Set(key, value)
		}
		return attribute(n, "action"), fields
	}
	t.Fatalf("there is no form: %s", body)
	return "", nil
}

// confirms fills in the form of a page and sends it, and returns where that leads.
func (p *person) confirms(path string, with map[string]string) (to string) {
	p.t.Helper()
	action, fields := p.fills(p.opens(path), with)
	w, text := p.do(http.MethodPost, action, fields)
	if w.Code != http.StatusSeeOther {
		p.t.Fatalf("%s: %d: %s", action, w.Code, text)
	}
	return w.Header().Get("Location")
}

const quickly = "ramp=none&window=200ms"

// A plan that is confirmed brings the letters home. A form that is sent twice, to whichever server,
// begins one run.
func TestServer_ConsoleConfirmedPlanRunsOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	done := c.outage(9)
	s, _ := c.run(serve.Config{})
	other, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 9)
	opens(t, c.clientOf(other, ""), "orders.dlq", 9)
	ann, bob := &person{t: t, s: s}, &person{t: t, s: other}
	ann.opens("/topics/orders.dlq", "Plan a redrive…")
	body := ann.opens("/topics/orders.dlq/redrive?class=http.*&"+quickly, "Sends 9 letters to orders.retry", "Only group billing sees them. One letter goes first", "Stops when http.503 appears again.")
	action, fields := ann.fills(body, map[string]string{"why": "fixed"})
	c.fail("orders", "http.503", 1) // it came after the plan
	opens(t, cl, "orders.dlq", 10)
	var clicks sync.WaitGroup
	places := make([]string, 4)
	for i := range places {
		clicks.Go(func() {
			w, text := []*person{ann, bob}[i%2].do(http.MethodPost, action, fields)
			if places[i] = w.Header().Get("Location"); w.Code != http.StatusSeeOther {
				t.Errorf("click %d: %d: %s", i, w.Code, text)
			}
		})
	}
	clicks.Wait()
	runs, err := cl.Runs(t.Context(), "orders.dlq", 0)
	if err != nil || len(runs) != 1 || runs[0].Why != "fixed" || runs[0].By != "local" {
		t.Fatalf("the runs are %+v, %v", runs, err)
	}
	for _, to := range places {
		if to != "/topics/orders.dlq/runs/"+runs[0].ID {
			t.Errorf("a click leads to %q", to)
		}
	}
	if last := ends(t, cl, runs[0]); last.Counts.Succeeded != 9 || done.Load() != 9 {
		t.Errorf("the run ended as %+v, and %d records were handled", last.Counts, done.Load())
	}
	// the plan is over: what the form says is not so any more
	fields.Set("key", "another")
	if w, text := ann.do(http.MethodPost, action, fields); w.Code != http.StatusConflict || !strings.Contains(text, "0 open letters") && !strings.Contains(text, "nothing") {
		t.Errorf("the same plan again: %d: %s", w.Code, text)
	}
}

// A run goes on in view on all pages of all servers, until a user aborts it without being asked
// anything. What was not sent is open.
func TestServer_ConsoleRunInViewIsAborted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	done := c.outage(30)
	s, _ := c.run(serve.Config{})
	other, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 30)
	ann, bob := &person{t: t, s: s}, &person{t: t, s: other}
	to := ann.confirms("/topics/orders.dlq/redrive?rate=0.1&ramp=none", map[string]string{"why": "fixed"})
	ann.opens(to, "Run ", "of 30 sent", "rate allowed 0.1/s", "Abort", "fixed")
	eventually(t, "the other server's pages have the card", func() bool {
		_, text := bob.do(http.MethodGet, "/", nil)
		return strings.Contains(text, "of 30 sent") && strings.Contains(text, "Abort")
	})
	bob.opens("/runs", "1 run under way")
	if w, text := bob.do(http.MethodPost, to+"/resume", nil); w.Code != http.StatusConflict || !strings.Contains(text, "run held") {
		t.Errorf("a run that its process owns is resumed: %d: %s", w.Code, text)
	}
	if w, _ := bob.do(http.MethodGet, to+"/abort", nil); w.Code != http.StatusNotFound {
		t.Errorf("a link aborts: %d", w.Code)
	}
	bob.opens("/runs", "1 run under way")
	for range 2 { // a second click finds what the first one did
		if w, text := bob.do(http.MethodPost, to+"/abort", nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
			t.Fatalf("abort: %d to %q: %s", w.Code, w.Header().Get("Location"), text)
		}
	}
	bob.opens(to, "aborted", "not sent", "Of the letters that were not sent, ", " stayed open")
	bob.opens("/audit", "aborted")
	eventually(t, "the run's own server has learnt of it", func() bool {
		runs, err := cl.Runs(t.Context(), "orders.dlq", 0)
		return err == nil && len(runs) == 1 && runs[0].State == "aborted"
	})
	if n := done.Load(); n > 15 {
		t.Errorf("%d records were handled", n)
	}
}

// A run whose server ended is without a process. A user resumes it at another server, and its
// letters come home.
func TestServer_ConsoleRunWithoutAProcessIsResumed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	done := c.outage(5)
	s, stop := c.run(serve.Config{Group: "first"})
	opens(t, c.clientOf(s, ""), "orders.dlq", 5)
	r, err := redrive.New(redrive.Config{Kafka: c.Opts})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"})
	if err != nil {
		t.Fatal(err)
	}
	// a run of the program, which servers do not go on with by themselves
	ctx, cancel := context.WithCancel(t.Context())
	_, _ = r.Run(ctx, plan, redrive.RunOptions{By: "ann", Pace: redrive.Pace{Rate: 1, Ramp: -1, Window: 200 * time.Millisecond}, On: func(e redrive.Event) {
		if e.Counts.Sent > 0 {
			cancel()
		}
	}})
	stop()
	other, _ := c.run(serve.Config{Group: "second"})
	cl := c.clientOf(other, "")
	bob := &person{t: t, s: other}
	to := "/topics/orders.dlq/runs/" + plan.ID
	eventually(t, "the run is without a process", func() bool {
		_, text := bob.do(http.MethodGet, to, nil)
		return strings.Contains(text, "no process owns it")
	})
	bob.opens("/runs", "1 run without a process: resume or abort it")
	for range 2 {
		if w, text := bob.do(http.MethodPost, to+"/resume", nil); w.Code != http.StatusSeeOther {
			t.Fatalf("resume: %d: %s", w.Code, text)
		}
	}
	run, err := cl.Run(t.Context(), "orders.dlq", plan.ID)
	if err != nil {
		t.Fatal(err)
	}
	if last := ends(t, cl, run); last.State != "done" || last.Counts.Succeeded != 5 || done.Load() != 5 {
		t.Errorf("the run ended as %+v, and %d records were handled", last, done.Load())
	}
}

// A letter goes out as the diff showed, and the ledger says that it was changed. What the server
// hides is not in the diff.
func TestServer_ConsoleLetterIsSentAsItsDiffShows(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	done := c.outage(3)
	s, _ := c.run(serve.Config{Redact: serve.Redact{Paths: []string{"secret"}}})
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 3)
	ann := &person{t: t, s: s}
	const path = "/topics/orders.dlq/letters/0/0"
	ann.opens(path, "Redrive…")
	ann.opens(path+"/redrive?"+quickly, "Letter 0/0 of orders.dlq", "Sends 1 letter to orders.retry", "Patch the value")
	edit := url.Values{"do": {"plan"}, "patch": {`{"n":7,"secret":"hunter2"}`}, "set": {"currency: EUR"}, "ramp": {"none"}, "window": {"200ms"}}
	w, text := ann.do(http.MethodPost, path+"/redrive", edit)
	for _, want := range []string{"What changes", "added: + currency: EUR", `removed: - "n": 0`, `added: + "n": 7`, "Sends 1 letter"} {
		if w.Code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the diff lacks %q: %d: %s", want, w.Code, text)
		}
	}
	if diff, _, _ := strings.Cut(text, "The plan"); strings.Contains(diff, "hunter2") {
		t.Errorf("the diff shows what is hidden: %s", diff)
	}
	action, fields := ann.fills(w.Body.String(), map[string]string{"why": "typo"})
	confirmed, text := ann.do(http.MethodPost, action, fields)
	if confirmed.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", confirmed.Code, text)
	}
	runs, err := cl.Runs(t.Context(), "orders.dlq", 0)
	if err != nil || len(runs) != 1 {
		t.Fatalf("the runs are %+v, %v", runs, err)
	}
	ends(t, cl, runs[0])
	l, err := cl.Letter(t.Context(), "orders.dlq", 0, 0)
	if err != nil || l.State != "succeeded" || done.Load() != 1 || len(l.Ledger) == 0 || strings.Join(l.Ledger[0].Edited, " ") != "headers value" {
		t.Errorf("the letter is %+v, %v; %d records were handled", l, err, done.Load())
	}
	ann.opens(path, "Succeeded", "changed: headers and value", "typo")
	edit.Set("patch", `[1]`)
	if w, text := ann.do(http.MethodPost, "/topics/orders.dlq/letters/1/0/redrive", edit); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "patch is no JSON object") {
		t.Errorf("a broken patch: %d: %s", w.Code, text)
	}
}

// Letters are discarded by their number, and by no user who may not; one comes back.
func TestServer_ConsoleLettersAreDiscardedAndReopened(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, map[string]string{"ada": "[{role: operator, topics: [orders*]}]", "bob": "[{role: reader}]"}), OpenMetrics: true}})
	c.fail("orders", "decode", 5)
	c.fail("orders", "http.503", 2)
	cl := c.clientOf(s, "ada")
	opens(t, cl, "orders.dlq", 7)
	ada, bob := signIn(t, s, "ada"), signIn(t, s, "bob")
	const path = "/topics/orders.dlq/discard?class=decode&since=6h"
	action, fields := ada.fills(ada.opens(path, "Open letters of orders.dlq: class decode", "Discards 5 letters: nobody brings them back", "Type the number of letters, 5, to go on."), nil)
	if fields.Get("expect") != "" || fields.Get("why") != "" || fields.Get("since") == "6h" || fields.Get("before") == "" {
		t.Errorf("the form is filled in, or does not fix what was seen: %v", fields)
	}
	for _, test := range []struct {
		who         *person
		expect, why string
		status      int
		text        string
	}{
		{ada, "", "moot", http.StatusBadRequest, "is not the number of letters: nothing was done"},
		{ada, "all", "moot", http.StatusBadRequest, "is not the number of letters"},
		{ada, "5", " ", http.StatusBadRequest, "takes a reason, for the ledger: nothing was done"},
		{ada, "4", "moot", http.StatusConflict, "selects 5 open letters of orders.dlq, and 4 are expected: nothing was done"},
		{bob, "5", "moot", http.StatusForbidden, "token bob has the role reader on orders.dlq, and this takes the role operator"},
	} {
		fields.Set("expect", test.expect)
		fields.Set("why", test.why)
		if w, text := test.who.do(http.MethodPost, action, fields); w.Code != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%d, want %d with %q: %s", w.Code, test.status, test.text, text)
		}
	}
	opens(t, cl, "orders.dlq", 7)
	fields.Set("expect", "5")
	fields.Set("why", "moot")
	for range 2 { // the second click finds what the first one did
		if w, text := ada.do(http.MethodPost, action, fields); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/audit?topic=orders.dlq" {
			t.Errorf("discarding: %d to %q: %s", w.Code, w.Header().Get("Location"), text)
		}
	}
	ada.opens("/audit?topic=orders.dlq", "token ada", "discarded", "moot", "5")
	opens(t, cl, "orders.dlq", 2)
	letter := "/topics/orders.dlq/letters/1/0"
	ada.opens(letter, "discarded", "Reopen…")
	for _, act := range []struct{ path, why, then string }{{"/reopen", "not moot", "Discard…"}, {"/discard", "moot again", "Reopen…"}} {
		action, fields := ada.fills(ada.opens(letter+act.path), nil)
		if w, text := ada.do(http.MethodPost, action, fields); w.Code != http.StatusBadRequest || !strings.Contains(text, "takes a reason") {
			t.Errorf("%s without a reason: %d: %s", act.path, w.Code, text)
		}
		if w, text := bob.do(http.MethodGet, letter+act.path, nil); w.Code != http.StatusForbidden || !strings.Contains(text, "takes the role operator on orders.dlq") {
			t.Errorf("%s of a reader: %d: %s", act.path, w.Code, text)
		}
		fields.Set("why", act.why)
		for range 2 {
			if w, text := ada.do(http.MethodPost, action, fields); w.Code != http.StatusSeeOther || w.Header().Get("Location") != letter {
				t.Errorf("%s: %d to %q: %s", act.path, w.Code, w.Header().Get("Location"), text)
			}
		}
		ada.opens(letter, act.why, act.then)
	}
	action, fields = ada.fills(ada.opens(letter+"/discard"), map[string]string{"why": "twice"})
	if w, text := ada.do(http.MethodPost, action, fields); w.Code != http.StatusConflict || !strings.Contains(text, "only an open letter can be discarded") {
		t.Errorf("a letter that is discarded already: %d: %s", w.Code, text)
	}
}

// Letters of a host whose clock is fast are letters of the topic's page that a discard left out
// without a word: it took those whose timestamp was before the server's time. What comes after the
// page was made is not discarded.
func TestServer_ConsoleActsOnLettersOfAFastClock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	fast := &kgo.Record{Topic: "orders.dlq", Headers: []kgo.RecordHeader{{Key: headers.FailureReason, Value: []byte(headers.ReasonTerminal)}}}
	for _, ahead := range []time.Duration{0, time.Hour, 2 * time.Hour} {
		fast.Timestamp = time.Now().Add(ahead)
		if err := c.Client.ProduceSync(t.Context(), fast).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	opens(t, cl, "orders.dlq", 3)
	ann := &person{t: t, s: s}
	const path = "/topics/orders.dlq/discard"
	action, fields := ann.fills(ann.opens(path, "Discards 3 letters"), map[string]string{"why": "moot", "expect": "3"})
	fast.Timestamp = time.Now().Add(3 * time.Hour)
	if err := c.Client.ProduceSync(t.Context(), fast).FirstErr(); err != nil {
		t.Fatal(err)
	}
	opens(t, cl, "orders.dlq", 4)
	if w, text := ann.do(http.MethodPost, action, fields); w.Code != http.StatusSeeOther {
		t.Errorf("%d: %s", w.Code, text)
	}
	opens(t, cl, "orders.dlq", 1)
	ann.opens(path, "Discards 1 letter")
}

// A rule says what it would do; paused on the console it does nothing until it is resumed there.
func TestServer_ConsoleRuleIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{RulesFile: rules(t, "rules: [{name: an outage, topics: 'orders*', classes: [http.*], cool-down: 1h}]")})
	c.fail("orders", "http.503", 3)
	opens(t, c.clientOf(s, ""), "orders.dlq", 3)
	ann := &person{t: t, s: s}
	ann.opens("/rules", "1 rule", "an outage", "orders.dlq", "ready", "quiet before 1 h")
	const path = "/rules/an%20outage/topics/orders.dlq"
	ann.opens(path, "It would do nothing now: ", "It selects 3 open letters.", "Nothing yet.")
	action, fields := ann.fills(ann.opens(path), map[string]string{"why": "deploying"})
	for range 2 { // a second click does nothing more
		if w, text := ann.do(http.MethodPost, action, fields); w.Code != http.StatusSeeOther || w.Header().Get("Location") != path {
			t.Errorf("pausing: %d to %q: %s", w.Code, w.Header().Get("Location"), text)
		}
	}
	if n := strings.Count(ann.opens(path, "paused by local", "deploying", "Let it go on"), ">paused</"); n != 1 {
		t.Errorf("the rule was paused %d times", n)
	}
	ann.opens("/rules", "paused on 1 topic")
	ann.confirms(path, nil)
	ann.opens(path, "resumed", "Pause it here")
	if w, text := ann.do(http.MethodGet, "/rules/none/topics/orders.dlq", nil); w.Code != http.StatusNotFound || !strings.Contains(text, "there is no rule") {
		t.Errorf("an unknown rule: %d: %s", w.Code, text)
	}
}

// Whose session is over while a form is open signs in, and is back at the page with the form.
func TestServer_ConsoleSignInLeadsBackToTheForm(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, map[string]string{"ada": "[{role: operator}]"})}})
	const page = "/topics/orders.dlq/redrive?class=decode"
	for from, want := range map[string]string{
		"http://localhost" + page: "/topics/orders.dlq/redrive?class=decode", "": "/", "http://evil.example" + page: "/", "http://localhost//evil.example": "",
	} {
		r := httptest.NewRequest(http.MethodPost, "/topics/orders.dlq/redrive", strings.NewReader("do=begin&expect=1&key=k"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Referer", from)
		w, text := visit(t, s, r)
		if back := `name="back" value="` + want + `"`; w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), back) {
			t.Errorf("from %q: %d, want the way back to %q: %s", from, w.Code, want, text)
		}
	}
}

// An expression selects letters in the list, in a plan and in a discard, for readers alone.
func TestServer_ConsoleActsOnWhatAnExpressionSelects(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	s, _ := c.run(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, map[string]string{"ada": "[{role: operator}]", "bob": "[{role: viewer}]"}), OpenMetrics: true}})
	for _, value := range []string{`{"n":1}`, `{"n":2}`, `{"n":3}`} {
		c.write("orders", "decode", &kgo.Record{Value: []byte(value)})
	}
	cl := c.clientOf(s, "ada")
	opens(t, cl, "orders.dlq", 3)
	ada, bob := signIn(t, s, "ada"), signIn(t, s, "bob")
	where := "?" + url.Values{"where": {"value.n > 1"}}.Encode()
	body := ada.opens("/topics/orders.dlq"+where, "where: value.n > 1", "groups are left out", "Plan a redrive…")
	if n := strings.Count(body, `id="letter-`); n != 2 {
		t.Errorf("%d letters are listed", n)
	}
	for path, status := range map[string]int{"/topics/orders.dlq": http.StatusForbidden, "/topics/orders.dlq/discard": http.StatusForbidden} {
		if w, text := bob.do(http.MethodGet, path+where, nil); w.Code != status || !strings.Contains(text, "takes the role") {
			t.Errorf("%s of a viewer: %d: %s", path, w.Code, text)
		}
	}
	if strings.Contains(bob.opens("/topics/orders.dlq"), `name="where"`) {
		t.Error("a viewer has a field for an expression")
	}
	if w, text := ada.do(http.MethodGet, "/topics/orders.dlq?where=value.", nil); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "where:") {
		t.Errorf("a broken expression: %d: %s", w.Code, text)
	}
	ada.opens("/topics/orders.dlq/discard"+where, "Discards 2 letters", "where value.n > 1")
	ada.confirms("/topics/orders.dlq/discard"+where, map[string]string{"expect": "2", "why": "moot"})
	opens(t, cl, "orders.dlq", 1)
}
