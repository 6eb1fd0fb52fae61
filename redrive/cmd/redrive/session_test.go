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
)

// A broker that goes away while a verb reads must not keep it for ever.
func TestSession_ABrokerThatGoesAwayEndsAVerb(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	i := invocation{env: map[string]string{"SIDING_BROKERS": b.addr, "SIDING_TIMEOUT": "1s"}, stdin: "5\n"}
	i.typed = b.Close
	began := time.Now()
	got := i.run(t, "discard", "orders.dlq", "--why", "x")
	if took := time.Since(began); got.code != exitError || got.stdout != "" || took > 45*time.Second {
		t.Errorf("after %s: %+v", took, got)
	}
}

// The table of rights in docs/operations.md is what an operator is granted. With exactly it the
// verbs work; with one right missing they name that right, and have done nothing.
func TestSession_NeedsTheDocumentedPermissions(t *testing.T) {
	t.Parallel()
	file := save(t, guarded(t, nil).as("admin").run(t, "export", "orders.dlq").stdout)
	for column, verbs := range [][][]string{
		{{"summary", "orders.dlq"}, {"list", "orders.dlq"}, {"show", "orders.dlq", "0:1"}, {"export", "orders.dlq"}, {"runs", "orders.dlq"}},
		{{"plan", "orders.dlq"}, {"run", "orders.dlq", "--canary", "0", "--window", "0", "--ramp", "0", "--no-wait"}},
		{{"discard", "orders.dlq", "--why", "x", "--yes"}},
		{{"import", "orders.dlq", file, "--keep-timestamps"}},
		{{"prune", "orders.dlq"}},
	} {
		rights := documentedRights(t, 0)
		if column > 0 { // it looks first
			rights = slices.Concat(rights, documentedRights(t, column))
		}
		for _, verb := range verbs {
			t.Run(verb[0], func(t *testing.T) {
				t.Parallel()
				if got := guarded(t, rights).as("ann").run(t, verb...); got.code != exitDone {
					t.Errorf("with all rights: %+v", got)
				}
				for i, missing := range rights {
					b := guarded(t, slices.Concat(rights[:i], rights[i+1:]))
					before := b.as("admin").run(t, "export", "orders.dlq", "--all").stdout
					got := b.as("ann").run(t, verb...)
					op, on := strings.ToUpper(missing.Operation.String()), kind(missing.Resource)+" "+missing.Name
					says := func(op string) bool {
						return strings.Contains(got.stderr, "not authorized: the user needs "+op+" on "+on+": have it granted (kafka-acls.sh ")
					}
					switch {
					// it looks elsewhere
					case on == "topic orders.dlq" && op == "READ" && verb[0] == "runs":
					// and at the letter all the same
					case on == "topic orders.dlq.ledger" && verb[0] == "show" && says(op) && got.code == exitDone:
					// of which one who may not even see it is told first
					case got.code != exitError || got.stdout != "" || !says(op) && !says("DESCRIBE"):
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

// documentedRights reads a column of the table.
func documentedRights(t *testing.T, column int) (rights []kfake.ACL) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### Permissions for redriving\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := regexp.MustCompile("^ (group|topic|transactional id) `([^`]+)`")
	right := regexp.MustCompile("`([A-Z_]+)`")
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
		for _, m := range right.FindAllStringSubmatch(cells[2+column], -1) {
			op, err := kmsg.ParseACLOperation(m[1])
			if err != nil {
				t.Fatal(err)
			}
			rights = append(rights, kfake.ACL{Resource: resource, Name: of[2], Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
		}
	}
	if len(rights) == 0 {
		t.Fatal("the table has no rights")
	}
	return rights
}
