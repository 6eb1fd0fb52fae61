package serve_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/internal/notify"
)

// next waits for the next message about something. One about a topic of which none should come
// fails the test.
func (h *hook) next(t *testing.T, about, not string) {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
		select {
		case m := <-h.got:
			switch {
			case strings.Contains(m, about):
				return
			case not != "" && strings.Contains(m, not):
				t.Errorf("received %q", m)
			}
		case <-end:
			t.Fatalf("no message came of %q", about)
		}
	}
}

// A webhook that hangs delays neither the other receivers, nor the metrics, nor the end of the
// server. The next server notifies that webhook again, and no other receiver.
func TestServer_AReceiverThatHangsDelaysNobody(t *testing.T) {
	c := newCluster(t, "orders")
	h := newHook(t)
	tried := make(chan struct{}, 100)
	hang := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		tried <- struct{}{}
		<-hang
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(hang) })
	t.Setenv("HOOK", "generic+"+h.URL+"?template=json")
	t.Setenv("HANGS", "generic+"+hanging.URL)
	cfg := serve.Config{
		Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{WarnOpen: 5, PageOpen: 10, New: -1, Oldest: -1, NewClass: -1, Retention: -1}}},
		Notify: []serve.Receiver{{Name: "hangs", URLEnv: "HANGS"}, {Name: "hook", URLEnv: "HOOK"}},
	}
	s, stop := c.run(cfg)
	c.fail("orders", "decode", 6)
	<-tried
	h.next(t, "[warn] orders.dlq: ", "")
	c.fail("orders", "decode", 6)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 12`)
	h.next(t, "[page] orders.dlq: ", "[warn] orders.dlq")
	c.noted("orders", "serve/alert/open", `"toldTo":["hook"]`)
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the server ended after %v", took)
	}
	for len(tried) > 0 {
		<-tried
	}
	_, _ = c.run(cfg)
	<-tried // the next server notifies the receivers without a message
	select {
	case m := <-h.got:
		t.Errorf("sent again: %q", m)
	default:
	}
}

// noted waits until a ledger has a note with a text.
func (c *cluster) noted(source, name, text string) {
	c.T.Helper()
	cl := c.reader(source + ".dlq.ledger")
	found := false
	eventually(c.T, name+" with "+text+" in the ledger", func() bool {
		for _, r := range cl.PollFetches(c.T.Context()).Records() {
			found = found || dlq.ParseLedgerRecord(r).Run == name && strings.Contains(string(r.Value), text)
		}
		return found
	})
}

// The examples of the page are URLs that the library takes.
func TestReceiver_ThePagesExamplesAreTaken(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	var schemes []string
	for _, m := range regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z+]+)(://[^`]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		schemes = append(schemes, m[1])
		if _, err := notify.New("test", m[1]+m[2], 1, slog.Default()); err != nil {
			t.Errorf("%s%s: %v", m[1], m[2], err)
		}
	}
	for _, s := range []string{"slack", "teams", "pagerduty", "smtp", "generic+https"} {
		if !slices.Contains(schemes, s) {
			t.Errorf("the page has no example of %s; it has %v", s, schemes)
		}
	}
}
