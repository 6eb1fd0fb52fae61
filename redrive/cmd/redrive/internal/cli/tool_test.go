package cli_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestTool_PrintsNoSecret(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", roottest.Hunter), kfake.Superuser("SCRAM-SHA-512", "me", roottest.Hunter))
	file := roottest.Save(t, roottest.Hunter+"\n")
	traces := []string{"hunter", base64.StdEncoding.EncodeToString([]byte("\x00me\x00" + roottest.Hunter))}
	for _, c := range []struct {
		args []string
		env  map[string]string
		code int
	}{
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "me", "--sasl-password-file", file}, nil, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "SCRAM-SHA-512", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "you"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER", "--sasl-token-file", file}, nil, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER"}, map[string]string{"SIDING_SASL_TOKEN": roottest.Hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "PLAIN"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter, "SIDING_SASL_TOKEN": roottest.Hunter}, cli.ExitUsage},
		{[]string{"topics", "-v", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitUsage},
		{[]string{"topics", "--help"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitDone},
	} {
		env := map[string]string{"SIDING_BROKERS": b.Addr}
		for k, v := range c.env {
			env[k] = v
		}
		got := roottest.Invocation{Env: env}.Run(t, c.args...)
		if got.Code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, got.Code, c.code, got.Stderr)
		}
		for _, trace := range traces {
			if strings.Contains(got.Stdout+got.Stderr, trace) {
				t.Errorf("%q: the secret is in\n%s%s", c.args, got.Stdout, got.Stderr)
			}
		}
		if c.code == cli.ExitDone && len(c.args) > 2 && !strings.Contains(got.Stderr, "level=DEBUG") {
			t.Errorf("%q: -v logs nothing: %s", c.args, got.Stderr)
		}
	}
}
