package notify_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// Whatever the kind of a receiver, its requests go over one client: none follows a redirect.
func TestService_EachGoesOverTheOneClient(t *testing.T) {
	var followed atomic.Int32
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			followed.Add(1)
		}
		http.Redirect(w, r, "/login", http.StatusFound)
	})
	secure, plain := httptest.NewTLSServer(h), httptest.NewServer(h)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	before := http.DefaultTransport
	http.DefaultTransport = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := secure.Listener.Addr().String()
			if strings.HasSuffix(address, ":80") {
				to = plain.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(func() { http.DefaultTransport = before })
	here := plain.Listener.Addr().String()
	for name, url := range map[string]string{
		"Slack":       "slack://hook:T00000000-B00000000-XXXXXXXXXXXXXXXXXXXXXXXX@webhook",
		"Slack's API": "slack://xoxb:123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N@C0123456789",
		"Teams":       "teams://11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2abcdef?host=example.webhook.office.com",
		"PagerDuty":   "pagerduty:///0123456789abcdef0123456789abcdef",
		"Discord":     "discord://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123@123456789012345678",
		"Mattermost":  "mattermost://" + here + "/0123456789abcdef0123456789?disabletls=yes",
		"Rocket.Chat": "rocketchat://rocket.test/AAAA/BBBB",
		"Gotify":      "gotify://" + here + "/AS3CRET12345678?disabletls=yes",
		"ntfy":        "ntfy://ntfy.test/topic",
		"Pushover":    "pushover://shoutrrr:0123456789abcdef@user",
		"a webhook":   "generic+http://hook.test/?template=json",
	} {
		t.Run(name, func(t *testing.T) {
			log := make(lines, 1)
			r, stop, _ := runsTo(t, url, 1, log)
			result := ends(t, r, notify.Message{Title: "t", Text: "x", Link: "http://siding/"})
			select {
			case line := <-log:
				if !strings.Contains(line, "redirects are not followed") {
					t.Errorf("the log has %s", line)
				}
			case err := <-result:
				t.Errorf("a redirect counts as accepted: %v", err)
			}
			stop()
		})
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

// A kind whose requests siding cannot bound is refused as the configuration is read.
func TestNew_RefusesWhatHasNoBounds(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=@x", "matrix://:TOKEN@matrix.test", "matrix://user:secret@matrix.test", "googlechat://chat.googleapis.com/v1/spaces/FOO/messages?key=bar&token=baz", "ntfy://ntfy.test/topic?disabletlsverification=yes", "logger://"} {
		if _, err := notify.New("test", url, 1, slog.Default()); err == nil {
			t.Errorf("%q is accepted", url)
		}
	}
}

// The URL of a webhook may ask for headers, for further fields, and for names of the usual ones.
func TestService_AWebhookGetsItsHeaders(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text := make([]byte, 1000)
		n, _ := r.Body.Read(text)
		if r.Method != http.MethodPut || r.Header.Get("Api-Key") != "s" || r.Header.Get("Content-Type") != "application/json" || r.URL.RawQuery != "x=y" ||
			!strings.Contains(string(text[:n]), `"text":"t\nsince now\nhttp://siding/"`) || !strings.Contains(string(text[:n]), `"room":"ops"`) || !strings.Contains(string(text[:n]), `"head":"t"`) {
			t.Errorf("it got %s %s, %v: %s", r.Method, r.URL, r.Header, text[:n])
		}
	}))
	t.Cleanup(h.Close)
	sends(t, runs(t, "generic+"+h.URL+"?template=json&method=PUT&@ApiKey=s&$room=ops&messagekey=text&titlekey=head&x=y"), notify.Message{Title: "t", Text: "since now", Link: "http://siding/"})
}
