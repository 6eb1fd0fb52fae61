package main

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

func TestTool_PrintsNoSecret(t *testing.T) {
	t.Parallel()
	b := newBroker(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", hunter), kfake.Superuser("SCRAM-SHA-512", "me", hunter))
	file := save(t, hunter+"\n")
	traces := []string{"hunter", base64.StdEncoding.EncodeToString([]byte("\x00me\x00" + hunter))}
	for _, c := range []struct {
		args []string
		env  map[string]string
		code int
	}{
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "me", "--sasl-password-file", file}, nil, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "SCRAM-SHA-512", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "you"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER", "--sasl-token-file", file}, nil, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER"}, map[string]string{"SIDING_SASL_TOKEN": hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "PLAIN"}, map[string]string{"SIDING_SASL_PASSWORD": hunter, "SIDING_SASL_TOKEN": hunter}, cli.ExitUsage},
		{[]string{"topics", "-v", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitUsage},
		{[]string{"topics", "--help"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitDone},
	} {
		env := map[string]string{"SIDING_BROKERS": b.addr}
		for k, v := range c.env {
			env[k] = v
		}
		got := invocation{env: env}.run(t, c.args...)
		if got.code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, got.code, c.code, got.stderr)
		}
		for _, trace := range traces {
			if strings.Contains(got.stdout+got.stderr, trace) {
				t.Errorf("%q: the secret is in\n%s%s", c.args, got.stdout, got.stderr)
			}
		}
		if c.code == cli.ExitDone && len(c.args) > 2 && !strings.Contains(got.stderr, "level=DEBUG") {
			t.Errorf("%q: -v logs nothing: %s", c.args, got.stderr)
		}
	}
}
