package servecmd_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A broken configuration is printed with files and lines before a broker is asked, and ends with
// the exit code of errors of usage.
func TestServe_ABrokenConfigurationAsksNoBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if c, err := l.Accept(); err == nil {
			c.Close()
			t.Error("a broker was asked")
		}
	}()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("rules.yaml", "rules:\n  - {name: a, topics: '*', classes: [b], zone: Mars/Base}\n")
	right := write("right.yaml", "refresh: 5s\n")
	wrong := write("wrong.yaml", "listn: x\nrefresh: soon\n")
	rules := write("serve.yaml", "rules-file: rules.yaml\n")
	open := write("open.yaml", "listen: 0.0.0.0:8642\naccess: {tokens-file: tokens.yaml}\n")
	if err := os.Chmod(write("tokens.yaml", "tokens: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const help = "see redrive serve --help\n"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--config", wrong}, cli.ExitUsage, "redrive: DIR/wrong.yaml:1: listn: there is no such key; did you mean listen?\n" +
			"  DIR/wrong.yaml:2: refresh: \"soon\" is not a duration: as in 90s, 5m, 4h, 180d\n" + help},
		{[]string{"--config", rules}, cli.ExitUsage, "redrive: DIR/rules.yaml:2: rules[0].zone: \"Mars/Base\" is no time zone: as in Europe/Berlin\n" + help},
		{[]string{"--config", rules, "--check"}, cli.ExitUsage, "redrive: DIR/rules.yaml:2: rules[0].zone: \"Mars/Base\" is no time zone: as in Europe/Berlin\n" + help},
		{[]string{"--config", filepath.Join(dir, "none.yaml")}, cli.ExitUsage, "redrive: the configuration cannot be read: open DIR/none.yaml: no such file or directory\n" + help},
		{
			[]string{"--config", right, "--listen", "0.0.0.0:80"},
			cli.ExitUsage,
			"redrive: --listen: \"0.0.0.0:80\" is not a loopback address: without access control the server listens on 127.0.0.1 or [::1] only\n" + help,
		},
		{[]string{"--config", right, "--tls-cert", "x"}, cli.ExitUsage, "redrive: --tls-cert is given without its key: give --tls-key too\n" + help},
		{[]string{"--check"}, cli.ExitUsage, "redrive: --check has nothing to check: give --config\n" + help},
		{[]string{"--config", right, "--check"}, cli.ExitDone, "DIR/right.yaml and the files that it names are right\n"},
		{
			[]string{"--config", open, "--check"},
			cli.ExitDone,
			"warning: access.tokens-file: other users of this machine can read or change DIR/tokens.yaml (mode 0644): chmod 600 DIR/tokens.yaml\n" +
				"warning: tls: not set, so tokens and sessions go over the network as they are: set cert-file and key-file, or, if a proxy before the server speaks HTTPS, " +
				"set url to its https:// address\nDIR/open.yaml and the files that it names are right\n",
		},
	} {
		got := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": l.Addr().String()}}.Run(t, append([]string{"serve"}, c.args...)...)
		got.Stderr = strings.ReplaceAll(got.Stderr, dir, "DIR")
		roottest.Exactly(t, got, c.code, "", c.want, c.args)
	}
	l.Close()
	<-asked
}

func TestMain(m *testing.M) { roottest.RunTests(m) }

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
	i := roottest.Invocation{Env: map[string]string{"SIDING_CONFIG": filepath.Join(folder, "config.yaml"), "SIDING_REDACT": "mail"}, Watch: func(words string) {
		at := address.FindString(words)
		if at == "" {
			return
		}
		go func() {
			defer cancel()
			for path := range pages {
				pages[path] = roottest.Page(ctx, t, at+path)
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

// The server sends its metrics over OTLP if OpenTelemetry's variables name a target, and the last
// ones as it ends. It does not run in parallel: the variables are the process's.
func TestNewExporter_SendsOverOTLP(t *testing.T) {
	broker := roottest.NewBroker(t, kfake.SeedTopics(1, "orders", "orders.dlq", "orders.dlq.ledger"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var got []string
	complete := false
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, r.URL.Path); bytes.Contains(body, []byte("siding.dead_letters.unread")) {
			complete = true
			cancel()
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
	env := map[string]string{"SIDING_BROKERS": broker.Addr, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}
	if r := (roottest.Invocation{Env: env}).In(ctx, t, "serve", "--listen", "127.0.0.1:0"); r.Code != cli.ExitDone {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	if !complete || got[0] != "/v1/metrics" {
		t.Errorf("the collector got %v, with the metrics: %v", got, complete)
	}
}
