package notify_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// lines is a log that hands over its lines, as long as the test takes them.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// A receiver that is down is in the log with each try. The log had the secrets of its URL: the
// services quote the address that they made of it, not the URL itself.
func TestReceiver_OneThatIsDownHasNoSecretsInTheLog(t *testing.T) {
	before := http.DefaultTransport
	http.DefaultTransport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}}
	t.Cleanup(func() { http.DefaultTransport = before })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := closed.Addr().String()
	closed.Close()
	for name, c := range map[string]struct {
		url     string
		secrets []string
	}{
		"Slack":               {"slack://hook:T11112222-B33334444-XXXXYYYYZZZZXXXXYYYYZZZZ@webhook", []string{"T11112222", "B33334444", "XXXXYYYYZZZZXXXXYYYYZZZZ"}},
		"Teams":               {"teams://11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2abcdef?host=example.webhook.office.com", []string{"11111111", "22222222", "33333333", "44444444", "V2abcdef"}},
		"PagerDuty":           {"pagerduty:///0123456789abcdef0123456789abcdef", []string{"0123456789abcdef"}},
		"e-mail":              {"smtp://s3cretuser:s3cretword@" + down + "/?fromAddress=siding@example.com&toAddresses=s3cret@example.com", []string{"s3cret"}},
		"a webhook":           {"generic+http://" + down + "/x/S3CRET?token=S3CRETQ&template=json", []string{"S3CRET"}},
		"a webhook, encoded":  {"generic+http://s3cret%2Fuser:s3cret%20word@" + down + "/x/s3cret%20path?token=s3cret+query%22", []string{"s3cret"}},
		"Gotify":              {"gotify://" + down + "/AS3CRET12345678?disabletls=yes", []string{"S3CRET"}},
		"Gotify, wrong token": {"gotify://gotify.example.com/AS3CRETthatIsTooLong", []string{"S3CRET"}},
	} {
		t.Run(name, func(t *testing.T) {
			log := make(lines, 1)
			r, stop, _ := runsTo(t, c.url, 1, log)
			ends(t, r, notify.Message{Title: "t"})
			line := <-log
			stop()
			if !strings.Contains(line, "a notification was not accepted") || !strings.Contains(line, "error=") {
				t.Errorf("the log has %s", line)
			}
			for _, s := range c.secrets {
				if strings.Contains(strings.ToLower(line), strings.ToLower(s)) {
					t.Errorf("%s is in the log: %s", s, line)
				}
			}
		})
	}
}
