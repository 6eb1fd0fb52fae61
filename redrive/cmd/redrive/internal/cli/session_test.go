package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A broker that goes away while a verb reads must not keep it for ever.
func TestSession_ABrokerThatGoesAwayEndsAVerb(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_TIMEOUT": "1s"}, Stdin: "5\n"}
	i.Typed = b.Close
	began := time.Now()
	got := i.Run(t, "discard", "orders.dlq", "--why", "x")
	if took := time.Since(began); got.Code != cli.ExitError || got.Stdout != "" || took > 45*time.Second {
		t.Errorf("after %s: %+v", took, got)
	}
}

// An operator grants the permissions in the table in docs/operations.md. With exactly these the
// verbs work. With one of them missing a verb names it, and does nothing.
func TestSession_NeedsTheDocumentedPermissions(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	file := roottest.Save(t, roottest.Guarded(t, nil).As("admin").Run(t, "export", "orders.dlq").Stdout)
	for column, verbs := range [][][]string{
		{{"summary", "orders.dlq"}, {"list", "orders.dlq"}, {"show", "orders.dlq", "0:1"}, {"export", "orders.dlq"}, {"runs", "orders.dlq"}},
		{{"plan", "orders.dlq"}, {"run", "orders.dlq", "--yes", "--canary", "0", "--window", "0", "--ramp", "0", "--no-wait"}},
		{{"discard", "orders.dlq", "--why", "x", "--yes"}},
		{{"import", "orders.dlq", file, "--keep-timestamps"}},
		{{"prune", "orders.dlq", "--yes"}},
	} {
		permissions := roottest.DocumentedPermissions(t, 0)
		if column > 0 { // it looks first
			permissions = slices.Concat(permissions, roottest.DocumentedPermissions(t, column))
		}
		for _, verb := range verbs {
			t.Run(verb[0], func(t *testing.T) {
				t.Parallel()
				if got := roottest.Guarded(t, permissions).As("ann").Run(t, verb...); got.Code != cli.ExitDone {
					t.Errorf("with all permissions: %+v", got)
				}
				for i, missing := range permissions {
					b := roottest.Guarded(t, slices.Concat(permissions[:i], permissions[i+1:]))
					before := b.As("admin").Run(t, "export", "orders.dlq", "--all").Stdout
					got := b.As("ann").Run(t, verb...)
					op, on := strings.ToUpper(missing.Operation.String()), roottest.Kind(missing.Resource)+" "+missing.Name
					names := func(op string) bool {
						return strings.Contains(got.Stderr, "not authorized: the user needs "+op+" on "+on+": have it granted (kafka-acls.sh ")
					}
					switch {
					// runs reads the ledger only
					case on == "topic orders.dlq" && op == "READ" && verb[0] == "runs":
					// show prints the letter without the ledger
					case on == "topic orders.dlq.ledger" && verb[0] == "show" && names(op) && got.Code == cli.ExitDone:
					// a user who may not see the topic gets an error about DESCRIBE
					case got.Code != cli.ExitError || got.Stdout != "" || !names(op) && !names("DESCRIBE"):
						t.Errorf("without %s on %s: %+v", op, on, got)
					default:
						if after := b.As("admin").Run(t, "export", "orders.dlq", "--all").Stdout; after != before {
							t.Errorf("without %s on %s something was done", op, on)
						}
					}
				}
			})
		}
	}
}
