package demo_test

import (
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// The demo hides what flags and variables name, so that redaction can be tried on it.
func TestServeDemo_TakesRedaction(t *testing.T) {
	t.Parallel()
	got := roottest.Invocation{Env: map[string]string{"SIDING_REDACT": "a["}}.Run(t, "demo", "--serve", "--redact-pattern", "(")
	roottest.Prints(t, got, cli.ExitUsage, "", "redrive: SIDING_REDACT: \"a[\" at column 3: the bracket does not end\n  --redact-pattern: error parsing regexp")
}
