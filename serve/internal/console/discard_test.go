package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// Letters are discarded when somebody types how many they are, and why. What was seen on the page
// is what is asked for.
func TestDiscard_WantsTheNumberTyped(t *testing.T) {
	t.Parallel()
	data, c := operated(t)
	const path = "/topics/orders.dlq/discard?class=tax.*&since=6h"
	has(t, "the page", look(t, c, path, http.StatusOK), "Open letters of orders.dlq: class tax.*", "Discards 1,902 letters: nobody brings them back", "Type the number of letters, 1,902, to go on.")
	action, fields := formIn(t, ask(c, "GET", path))
	shown := data.last.Filter
	if fields.Get("expect") != "" || fields.Get("why") != "" {
		t.Fatalf("the form is filled in: %v", fields)
	}
	for name, test := range map[string]struct{ expect, why, text string }{
		"no number": {"", "moot", "is not the number of letters: nothing was done"},
		"a word":    {"all", "moot", "is not the number of letters"},
		"no reason": {"1902", " ", "takes a reason, for the ledger: nothing was done"},
	} {
		fields.Set("expect", test.expect)
		fields.Set("why", test.why)
		if w := send(c, action, fields); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("%s: %d: %s", name, w.Code, w.Body)
		}
	}
	if len(data.did) != 0 {
		t.Fatalf("it was done: %v", data.did)
	}
	fields.Set("expect", "1,902")
	fields.Set("why", "moot")
	data.refuse = &pageError{http.StatusConflict, "the filter selects 1903 letters: nothing was done"}
	if w := send(c, action, fields); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "selects 1903 letters") {
		t.Errorf("refused: %d: %s", w.Code, w.Body)
	}
	data.refuse = nil
	for range 2 {
		if w := send(c, action, fields); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/audit?topic=orders.dlq" {
			t.Errorf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
		}
	}
	if !slices.Equal(data.did, []string{"discard all: moot", "discard all: moot"}) {
		t.Errorf("what was done: %v", data.did)
	}
	if f := data.last.Filter; *data.last.Expect != 1902 || f.Class[0] != "tax.*" || f.EnteredUntil.IsZero() || f.Since.Before(shown.Since) {
		t.Errorf("discarded: %+v, shown: %+v", data.last, shown)
	}
}

// A letter is discarded and reopened with a reason, by who may.
func TestDiscard_OneLetterAndBack(t *testing.T) {
	t.Parallel()
	data, c := operated(t)
	has(t, "an open letter", look(t, c, "/topics/orders.dlq/letters/1/6", http.StatusOK), "Discard…")
	has(t, "a discarded letter", look(t, c, "/topics/orders.dlq/letters/1/7", http.StatusOK), "Reopen…")
	for path, want := range map[string]string{"/topics/orders.dlq/letters/1/6/discard": "discard one: moot", "/topics/orders.dlq/letters/1/7/reopen": "reopen: moot"} {
		action, fields := formIn(t, ask(c, "GET", path))
		if w := send(c, action, fields); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "takes a reason") {
			t.Errorf("%s without a reason: %d", path, w.Code)
		}
		fields.Set("why", "moot")
		for range 2 {
			if w := send(c, action, fields); w.Code != http.StatusSeeOther || w.Header().Get("Location") != path[:strings.LastIndex(path, "/")] {
				t.Errorf("%s: %d to %q", path, w.Code, w.Header().Get("Location"))
			}
		}
		if len(data.did) != 1 || data.did[0] != want {
			t.Errorf("%s: %v", path, data.did)
		}
		data.did = nil
		data.role = access.Reader
		if w := ask(c, "GET", path); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "takes the role operator on orders.dlq") {
			t.Errorf("%s of a reader: %d", path, w.Code)
		}
		data.role = access.Operator
	}
}

// However often a form is sent at once, it is carried out once; one that failed may be sent again.
func TestMemory_CarriesOutOnce(t *testing.T) {
	t.Parallel()
	var m memory
	var done atomic.Int64
	now := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := m.once("a", now, func() error { done.Add(1); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if done.Load() != 1 {
		t.Errorf("it was done %d times", done.Load())
	}
	no := errors.New("no")
	for range 2 {
		if err := m.once("b", now, func() error { done.Add(1); return no }); !errors.Is(err, no) {
			t.Errorf("%v", err)
		}
	}
	if done.Load() != 3 {
		t.Errorf("a form that failed was done %d times", done.Load()-1)
	}
}
