package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// formIn returns the fields of the form of a page that does something, as a browser sends it.
func formIn(t testing.TB, w *httptest.ResponseRecorder) (action string, fields url.Values) {
	t.Helper()
	fields = url.Values{}
	for _, n := range parse(t, strings.NewReader(w.Body.String())) {
		if n.Data != "form" || attr(n, "class") != "act" {
			continue
		}
		for d := range n.Descendants() {
			switch name := attr(d, "name"); {
			case d.Type != html.ElementNode || name == "":
			case d.Data == "textarea":
				fields.Add(name, d.FirstChild.Data)
			case attr(d, "type") == "checkbox": // nobody checked it
			default:
				fields.Add(name, attr(d, "value"))
			}
		}
		return attr(n, "action"), fields
	}
	return "", nil
}

// send sends a form.
func send(c http.Handler, path string, fields url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(fields.Encode()))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

func operated(t testing.TB) (*archive, *Console) {
	t.Helper()
	data := newArchive(plain)
	data.role = access.Operator
	return data, open(t, data)
}

// A plan is a sentence before it is a table, and its warnings stand above the button. What it
// selects and how it goes is what is confirmed.
func TestRedrive_PlanIsASentenceFirst(t *testing.T) {
	t.Parallel()
	data, c := operated(t)
	const path = "/topics/orders.dlq/redrive?class=tax.*&since=6h&rate=2.5&canary=none"
	text := look(t, c, path, http.StatusOK)
	has(t, "the plan", text, "Open letters of orders.dlq: class tax.* and since",
		"Sends 1,902 letters to billing at 2.5/s: 38 min. Only group billing sees them. None goes first. Stops when tax.TableMiss appears again.", "Warning no rate for region",
		"Look twice: there are warnings, a limit of the run is off. Type the number of letters, 1,902, to go on.", "Send 1,902 letters", "Letters by class", "Plan again")
	if w, s, b := strings.Index(text, "Warning"), strings.Index(text, "Sends"), strings.Index(text, "Send 1,902"); s > w || w > b {
		t.Errorf("the sentence, the warning and the button are at %d, %d and %d", s, w, b)
	}
	planned := data.last
	action, fields := formIn(t, ask(c, "GET", path))
	fields.Set("expect", "1,902")
	fields.Set("why", "fixed")
	w := send(c, action, fields)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/topics/orders.dlq/runs/r1" {
		t.Fatalf("confirming: %d to %q: %s", w.Code, to, w.Body)
	}
	began := data.last
	if *began.Expect != 1902 || began.Why != "fixed" || data.key == "" || began.Pace.Rate != 2.5 || began.Pace.Canary != -1 || began.Filter.Class[0] != "tax.*" {
		t.Errorf("the run is %+v with key %q", began, data.key)
	}
	// the times of the plan that was looked at, not later ones
	if again, old := began.Filter, planned.Filter; again.Since.Before(old.Since) || again.Since.IsZero() || again.EnteredUntil.IsZero() {
		t.Errorf("the run selects %+v, the plan %+v", again, old)
	}
	second := send(c, action, fields)
	if second.Code != http.StatusSeeOther || !data.last.Filter.Since.Equal(began.Filter.Since) || !data.last.Filter.EnteredUntil.Equal(began.Filter.EnteredUntil) {
		t.Errorf("a second click selects %+v, the first %+v", data.last.Filter, began.Filter)
	}
}

// Whatever is wrong with a form is told in words, with the plan as it is now, and nothing begins.
func TestRedrive_BadInputBeginsNothing(t *testing.T) {
	t.Parallel()
	data, c := operated(t)
	const path = "/topics/orders.dlq/redrive"
	for name, test := range map[string]struct {
		set, to string
		status  int
		text    string
	}{
		"no number":      {"expect", "", 400, "is not the number of letters: nothing was done"},
		"a word":         {"expect", "all", 400, `"all" is not the number of letters`},
		"no key":         {"key", "", 400, "not one of this page: nothing was done"},
		"a long reason":  {"why", strings.Repeat("x", mostWhy+1), 400, "in the address"},
		"a rate of zero": {"rate", "0", 400, `Letters a second: "0" is not a number above 0`},
		"an odd rate":    {"rate", "NaN", 400, `Letters a second: "NaN" is not a number above 0`},
		"a long ramp":    {"ramp", "9999h", 400, `Ramp: "9999h" is not a time`},
		"a state":        {"state", "failed", 400, "Only open letters can be acted on"},
		"an odd time":    {"before", "once", 400, `"once" is not a time`},
	} {
		_, fields := formIn(t, ask(c, "GET", path))
		fields.Set("expect", "1902")
		fields.Set(test.set, test.to)
		w := send(c, path, fields)
		if !strings.Contains(html.UnescapeString(w.Body.String()), test.text) || w.Code != test.status {
			t.Errorf("%s: %d: %s", name, w.Code, w.Body)
		}
	}
	_, fields := formIn(t, ask(c, "GET", path))
	fields.Set("expect", "7")
	key := fields.Get("key")
	data.refuse = &pageError{http.StatusConflict, "1902 letters would be sent, and 7 are expected: nothing was done"}
	w := send(c, path, fields)
	_, again := formIn(t, w)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "and 7 are expected") || again.Get("key") == key || again.Get("key") == "" {
		t.Errorf("a refused run: %d, %v", w.Code, again)
	}
	// perhaps it began: the same key finds out
	data.refuse = &pageError{http.StatusBadGateway, "the brokers are slow"}
	if _, again = formIn(t, send(c, path, fields)); again.Get("key") != key {
		t.Errorf("after an error of the brokers the key is %q, want %q", again.Get("key"), key)
	}
	if n := data.runs.Load(); n != 0 {
		t.Errorf("%d runs began", n)
	}
	data.slow = &pageError{http.StatusConflict, "no tier"}
	if text := look(t, c, path, http.StatusConflict); !strings.Contains(text, "no tier") || strings.Contains(text, "Send 1,902") || !strings.Contains(text, "Plan again") {
		t.Errorf("without a plan: %s", text)
	}
}

// Who may not act sees why, and who gives the right; there is no button.
func TestRedrive_SaysWhichRoleItTakes(t *testing.T) {
	t.Parallel()
	data := newArchive(plain)
	c := open(t, data)
	for _, path := range []string{"/topics/orders.dlq", "/topics/orders.dlq/letters/1/5"} {
		data.role = access.Reader
		if text := look(t, c, path, http.StatusOK); strings.Contains(text, "edrive…") || !strings.Contains(text, "takes the role operator on orders.dlq") {
			t.Errorf("%s of a reader: %s", path, text)
		}
		data.role = access.Operator
	}
	for _, path := range []string{"/topics/orders.dlq", "/topics/orders.dlq/letters/1/6"} {
		if text := look(t, c, path, http.StatusOK); !strings.Contains(text, "edrive…") || strings.Contains(text, "takes the role") {
			t.Errorf("%s of an operator: %s", path, text)
		}
	}
	data.role = access.Reader
	has(t, "the plan of a reader", look(t, c, "/topics/orders.dlq/redrive", http.StatusForbidden), "this takes the role operator")
	has(t, "a filter by state", look(t, c, "/topics/orders.dlq/redrive?state=failed", http.StatusBadRequest), "Only open letters can be acted on")
}

// Brokers that did not answer while a run was begun have used up the time of the request. The page
// says so, and does not ask them for another plan: that once took longer than the answer may.
func TestRedrive_MakesNoPlanWithoutTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		data, c := operated(t)
		data.frozen = true
		begun := time.Now()
		w := send(c, "/topics/orders.dlq/redrive", url.Values{"do": {"begin"}, "key": {"k"}, "expect": {"1902"}})
		if took := time.Since(begun); w.Code != http.StatusGatewayTimeout || took != time.Minute {
			t.Errorf("%d after %v", w.Code, took)
		}
		if text := w.Body.String(); !strings.Contains(text, "brokers did not answer in time") || strings.Contains(text, "Send 1,902") {
			t.Errorf("the page is %s", text)
		}
	})
}
