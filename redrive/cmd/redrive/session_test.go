package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

// A broker that goes away while a verb reads must not keep it for ever.
func TestSession_ABrokerThatGoesAwayEndsAVerb(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	i := invocation{env: map[string]string{"SIDING_BROKERS": b.addr, "SIDING_TIMEOUT": "1s"}, stdin: "5\n"}
	i.typed = b.Close
	began := time.Now()
	got := i.run(t, "discard", "orders.dlq", "--why", "x")
	if took := time.Since(began); got.code != cli.ExitError || got.stdout != "" || took > 45*time.Second {
		t.Errorf("after %s: %+v", took, got)
	}
}

// An operator grants the permissions in the table in docs/operations.md. With exactly these the
// verbs work. With one of them missing a verb names it, and does nothing.
func TestSession_NeedsTheDocumentedPermissions(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	file := save(t, guarded(t, nil).as("admin").run(t, "export", "orders.dlq").stdout)
	for column, verbs := range [][][]string{
		{{"summary", "orders.dlq"}, {"list", "orders.dlq"}, {"show", "orders.dlq", "0:1"}, {"export", "orders.dlq"}, {"runs", "orders.dlq"}},
		{{"plan", "orders.dlq"}, {"run", "orders.dlq", "--yes", "--canary", "0", "--window", "0", "--ramp", "0", "--no-wait"}},
		{{"discard", "orders.dlq", "--why", "x", "--yes"}},
		{{"import", "orders.dlq", file, "--keep-timestamps"}},
		{{"prune", "orders.dlq", "--yes"}},
	} {
		permissions := documentedPermissions(t, 0)
		if column > 0 { // it looks first
			permissions = slices.Concat(permissions, documentedPermissions(t, column))
		}
		for _, verb := range verbs {
			t.Run(verb[0], func(t *testing.T) {
				t.Parallel()
				if got := guarded(t, permissions).as("ann").run(t, verb...); got.code != cli.ExitDone {
					t.Errorf("with all permissions: %+v", got)
				}
				for i, missing := range permissions {
					b := guarded(t, slices.Concat(permissions[:i], permissions[i+1:]))
					before := b.as("admin").run(t, "export", "orders.dlq", "--all").stdout
					got := b.as("ann").run(t, verb...)
					op, on := strings.ToUpper(missing.Operation.String()), kind(missing.Resource)+" "+missing.Name
					says := func(op string) bool {
						return strings.Contains(got.stderr, "not authorized: the user needs "+op+" on "+on+": have it granted (kafka-acls.sh ")
					}
					switch {
					// runs reads the ledger only
					case on == "topic orders.dlq" && op == "READ" && verb[0] == "runs":
					// show prints the letter without the ledger
					case on == "topic orders.dlq.ledger" && verb[0] == "show" && says(op) && got.code == cli.ExitDone:
					// a user who may not see the topic gets an error about DESCRIBE
					case got.code != cli.ExitError || got.stdout != "" || !says(op) && !says("DESCRIBE"):
						t.Errorf("without %s on %s: %+v", op, on, got)
					default:
						if after := b.as("admin").run(t, "export", "orders.dlq", "--all").stdout; after != before {
							t.Errorf("without %s on %s something was done", op, on)
						}
					}
				}
			})
		}
	}
}

// documentedPermissions reads a column of the table.
func documentedPermissions(t *testing.T, column int) (permissions []kfake.ACL) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### Permissions for redriving\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := regexp.MustCompile("^ (group|topic|transactional id) `([^`]+)`")
	operation := regexp.MustCompile("`([A-Z_]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			continue
		}
		of := named.FindStringSubmatch(cells[1])
		if of == nil {
			continue
		}
		resource := map[string]kmsg.ACLResourceType{"topic": kmsg.ACLResourceTypeTopic, "group": kmsg.ACLResourceTypeGroup, "transactional id": kmsg.ACLResourceTypeTransactionalId}[of[1]]
		for _, m := range operation.FindAllStringSubmatch(cells[2+column], -1) {
			op, err := kmsg.ParseACLOperation(m[1])
			if err != nil {
				t.Fatal(err)
			}
			permissions = append(permissions, kfake.ACL{Resource: resource, Name: of[2], Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
		}
	}
	if len(permissions) == 0 {
		t.Fatal("the table has no permissions")
	}
	return permissions
}
