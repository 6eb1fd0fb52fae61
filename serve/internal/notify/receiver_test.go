package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// runs makes a receiver and runs it until the test ends.
func runs(t *testing.T, url string) *notify.Receiver {
	t.Helper()
	r, stop, _ := runsTo(t, url, 1000, t.Output())
	t.Cleanup(stop)
	return r
}

// runsTo makes a receiver that logs to w, and runs it until stop is called, which waits for its
// end, or until ending is.
func runsTo(t *testing.T, url string, waiting int, w io.Writer) (r *notify.Receiver, stop, ending func()) {
	t.Helper()
	r, err := notify.New("test", url, waiting, slog.New(slog.NewTextHandler(w, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	return r, func() { cancel(); running.Wait() }, cancel
}

// sends sends a message and waits for its end.
func sends(t *testing.T, r *notify.Receiver, m notify.Message) {
	t.Helper()
	if err := <-ends(t, r, m); err != nil {
		t.Fatal(err)
	}
}

// A webhook gets a message as JSON, with what a program needs to distinguish incidents.
func TestReceiver_AWebhookGetsFields(t *testing.T) {
	t.Parallel()
	got := make(chan map[string]string, 1)
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m := map[string]string{}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		got <- m
	}))
	t.Cleanup(h.Close)
	sends(t, runs(t, "generic+"+h.URL+"?template=json"), notify.Message{Title: "[page] orders.dlq: 120 letters open", Text: "since now", Link: "http://siding/topics/orders.dlq", Key: "k", Urgent: true, Owner: "team billing", Runbook: "https://wiki/x"})
	m := <-got
	if note, has := m["note"]; has {
		t.Errorf("there is a note %q", note)
	}
	for key, want := range map[string]string{"owner": "team billing", "runbook": "https://wiki/x", "message": "[page] orders.dlq: 120 letters open\nsince now\nowner: team billing\nrunbook: https://wiki/x\nhttp://siding/topics/orders.dlq", "title": "[page] orders.dlq: 120 letters open", "severity": "critical", "state": "begun", "key": "k", "link": "http://siding/topics/orders.dlq"} {
		if m[key] != want {
			t.Errorf("%s is %q, want %q", key, m[key], want)
		}
	}
}

// A pager opens an incident, and closes the same one when it is over. It refuses what it does not
// know, such as a title: once, no message reached it.
func TestReceiver_APagerClosesWhatItOpened(t *testing.T) {
	type event struct {
		Action  string `json:"event_action"`
		Key     string `json:"dedup_key"`
		Payload struct{ Summary, Severity string }
	}
	got := make(chan event, 2)
	h := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e event
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &e); err != nil {
			t.Error(err)
		}
		got <- e
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(h.Close)
	before := http.DefaultTransport
	http.DefaultTransport = h.Client().Transport
	t.Cleanup(func() { http.DefaultTransport = before })
	r := runs(t, "pagerduty://"+h.Listener.Addr().String()+"/"+strings.Repeat("a", 32))
	sends(t, r, notify.Message{Title: "[page] orders.dlq: 120 letters open", Key: "k", Urgent: true})
	sends(t, r, notify.Message{Title: "[over] orders.dlq: 120 letters open", Key: "k", Over: true})
	begun, over := <-got, <-got
	if begun.Action != "trigger" || begun.Payload.Severity != "critical" || !strings.HasPrefix(begun.Payload.Summary, "[page] orders.dlq: 120 letters open\n") {
		t.Errorf("the pager got %+v", begun)
	}
	if over.Action != "resolve" || over.Key != "k" || begun.Key != "k" {
		t.Errorf("the pager got %+v, and then %+v", begun, over)
	}
}

// posted is what a chat got: the address of its webhook, and the message.
type posted struct {
	address string
	text    map[string]any
}

// chats answers requests to whatever host, as the webhooks of chats do. The library lets no URL
// name another host than theirs, so it is the process's transport that leads here.
func chats(t *testing.T) chan posted {
	t.Helper()
	got := make(chan posted, 10)
	h := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p := posted{address: "https://" + r.Host + r.URL.Path}
		if err := json.NewDecoder(r.Body).Decode(&p.text); err != nil {
			t.Error(err)
		}
		got <- p
	}))
	t.Cleanup(h.Close)
	to := h.Client().Transport.(*http.Transport).Clone()
	to.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, h.Listener.Addr().String())
	}
	to.TLSClientConfig.ServerName = "example.com" // as the certificate has it
	before := http.DefaultTransport
	http.DefaultTransport = to
	t.Cleanup(func() { http.DefaultTransport = before })
	return got
}

// Slack shows the title, and below it the rest and the link. The second message says that the
// incident is over, not what the first one said.
func TestReceiver_SlackShowsTitleAndLink(t *testing.T) {
	got := chats(t)
	r := runs(t, "slack://hook:T00000000-B00000000-XXXXXXXXXXXXXXXXXXXXXXXX@webhook")
	for _, title := range []string{"[page] orders.dlq: 120 letters open", "[over] orders.dlq: 120 letters open"} {
		sends(t, r, notify.Message{Title: title, Text: "since now", Link: "http://siding/topics/orders.dlq"})
		m := <-got
		want := map[string]any{"text": title, "attachments": []any{map[string]any{"text": "since now"}, map[string]any{"text": "http://siding/topics/orders.dlq"}}}
		if m.address != "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX" || !reflect.DeepEqual(m.text, want) {
			t.Errorf("Slack got %v at %s", m.text, m.address)
		}
	}
}

// Teams shows a card with the title, and the rest and the link as sections.
func TestReceiver_TeamsShowsTitleAndLink(t *testing.T) {
	got := chats(t)
	const a, b, c, d = "11111111-4444-4444-8444-cccccccccccc", "22222222-4444-4444-8444-cccccccccccc", "33333333012222222222333333333344", "44444444-4444-4444-8444-cccccccccccc"
	r := runs(t, "teams://"+a+"@"+b+"/"+c+"/"+d+"/V2abcdef?host=example.webhook.office.com")
	sends(t, r, notify.Message{Title: "[page] orders.dlq: 120 letters open", Text: "since now", Link: "http://siding/topics/orders.dlq"})
	m := <-got
	sections := []any{map[string]any{"text": "since now"}, map[string]any{"text": "http://siding/topics/orders.dlq"}}
	if m.address != "https://example.webhook.office.com/webhookb2/"+a+"@"+b+"/IncomingWebhook/"+c+"/"+d+"/V2abcdef" {
		t.Errorf("the card went to %s", m.address)
	}
	if m.text["@type"] != "MessageCard" || m.text["title"] != "[page] orders.dlq: 120 letters open" || !reflect.DeepEqual(m.text["sections"], sections) {
		t.Errorf("Teams got %v", m.text)
	}
}

// A receiver that accepts connections and never answers holds neither the sender nor the end.
func TestReceiver_OneThatHangsHoldsNobody(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	came := make(chan struct{}, 10)
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-hang
	}))
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(hang) })
	r := runs(t, "generic+"+h.URL)
	ended := make(chan error, 1)
	begin := time.Now()
	queued := 0
	for ; queued < 2000; queued++ {
		if !r.Send(notify.Message{Title: "t", Done: func(err error) {
			select {
			case ended <- err:
			default:
			}
		}}) {
			break
		}
	}
	<-came
	if queued < 1000 || queued > 1001 {
		t.Errorf("%d messages were queued, want 1000", queued)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	t.Cleanup(func() { // runs before the receiver is ended
		select {
		case err := <-ended:
			t.Errorf("a message ended with %v", err)
		default:
		}
	})
}

// Some URLs make the library panic. A file with one is refused, and the secret is not in the error.
func TestNew_RefusesWhatIsNoURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "x", "://", "teams+https://secret.example/search?q=x", "slack://secret", "pagerduty:///secret", "generic+ftp", "smtp://", "nothing://secret"} {
		if _, err := notify.New("test", url, 1000, slog.Default()); err == nil {
			t.Errorf("%q is accepted", url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error is %v", url, err)
		}
	}
}

// A receiver was down while the topic got another owner, which sends the message itself.
func TestReceiver_DropsWhatAnotherProcessTells(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- string(text)
	}))
	defer h.Close()
	r := runs(t, "generic+"+h.URL)
	if err := <-ends(t, r, notify.Message{Title: "old", Drop: func() bool { return true }}); !errors.Is(err, notify.ErrDropped) {
		t.Errorf("it ended with %v", err)
	}
	sends(t, r, notify.Message{Title: "new", Drop: func() bool { return false }})
	if text := <-got; !strings.Contains(text, "new") {
		t.Errorf("sent %q", text)
	}
}

// The server ends while a receiver takes a message: the next server must not send it again.
func TestReceiver_KnowsWhatWasAcceptedAsItEnded(t *testing.T) {
	t.Parallel()
	there, ended := make(chan struct{}), make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(there)
		<-ended
	}))
	defer h.Close()
	r, stop, ending := runsTo(t, "generic+"+h.URL, 1000, t.Output())
	done := ends(t, r, notify.Message{Title: "x"})
	<-there
	ending()
	close(ended)
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	default:
		t.Error("it is not known that it was accepted")
	}
}
