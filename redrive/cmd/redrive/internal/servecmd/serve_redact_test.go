package servecmd_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// The server accepted the flags, the variable and the profile that hide parts of letters, and
// showed these parts on the console and by the API.
func TestRunServer_HidesWhatFlagsVariablesAndProfileHide(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	l := roottest.Letter("orders.dlq", 0, time.Hour, headers.Meta{Class: "tax", Message: "card 4111111111111111 declined"})
	l.Value = []byte(`{"iban":"DE-secret","mail":"ada-secret","sku":"public"}`)
	l.Headers = append(l.Headers, kgo.RecordHeader{Key: "x-card", Value: []byte("header-secret")})
	b.Produce(t, l)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"config.yaml": "profile: p\nprofiles:\n  p:\n    brokers: [" + b.Addr + "]\n    redact-pattern: ['\\d{13,19}']\n",
		"serve.yaml":  "redact: {headers: [x-other]}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pages := map[string]string{"/api/v1/topics/orders.dlq/letters/0/4": "", "/topics/orders.dlq/letters/0/4": ""}
	address := regexp.MustCompile(`(?m)^http://127.0.0.1:\d+$`)
	i := roottest.Invocation{Env: map[string]string{"SIDING_CONFIG": filepath.Join(folder, "config.yaml"), "SIDING_REDACT": "mail"}, Observe: func(words string) {
		at := address.FindString(words)
		if at == "" {
			return
		}
		go func() {
			defer cancel()
			for path := range pages {
				pages[path] = readsPage(ctx, t, at+path)
			}
		}()
	}}
	got := i.In(ctx, t, "serve", "--config", filepath.Join(folder, "serve.yaml"), "--listen", "127.0.0.1:0", "--redact", "iban", "--redact-header", "x-card")
	if got.Code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	for path, text := range pages {
		if !strings.Contains(text, "public") {
			t.Errorf("%s does not show the letter: %s", path, text)
		}
		for _, secret := range []string{"DE-secret", "ada-secret", "header-secret", "4111111111111111"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", path, secret)
			}
		}
	}
}

// readsPage asks for a page until the server has it.
func readsPage(ctx context.Context, t *testing.T, address string) string {
	for tick := time.Tick(50 * time.Millisecond); ; {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			t.Error(err)
			return ""
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return string(text)
			}
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s was not answered", address)
			return ""
		case <-tick:
		}
	}
}
