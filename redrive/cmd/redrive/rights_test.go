package main

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// The table of rights in docs/operations.md is what an operator is granted. With exactly it the verbs work; with one right missing they
// name that right, and have done nothing.
func TestTheDocumentedRightsAreEnoughAndAMissingOneIsNamed(t *testing.T) {
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
					case on == "topic orders.dlq" && op == "READ" && verb[0] == "runs": // it looks elsewhere
					case on == "topic orders.dlq.ledger" && verb[0] == "show" && says(op) && got.code == exitDone: // and at the letter all the same
					case got.code != exitError || got.stdout != "" || !says(op) && !says("DESCRIBE"): // of which one who may not even see it is told first
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

// Who has to ask for rights asks once: a plan names all that are missing, with those on the transactional ids that only a run uses.
func TestAPlanNamesAllRightsThatAreMissing(t *testing.T) {
	t.Parallel()
	all := slices.Concat(documentedRights(t, 0), documentedRights(t, 1))
	without := func(names ...string) (rights []kfake.ACL) {
		for _, r := range all {
			if !slices.Contains(names, r.Operation.String()+" "+r.Name) {
				rights = append(rights, r)
			}
		}
		return rights
	}
	ids := []string{"WRITE on transactional-id siding-redrive-orders.dlq-a", "WRITE on transactional-id siding-redrive-orders.dlq-b"}
	for name, c := range map[string]struct {
		rights []kfake.ACL
		more   []string
		want   []string
	}{
		"all but to look": {rights: documentedRights(t, 0), want: slices.Concat([]string{"WRITE on topic orders.dlq.ledger"}, ids, []string{"DESCRIBE on group billing"})},
		"some":            {rights: without("READ orders.dlq", "WRITE siding-redrive-orders.dlq-b"), more: []string{"--offset", "0:1"}, want: []string{"DESCRIBE on topic orders.dlq"}},
		"the ledger, to read": {
			rights: without("READ orders.dlq.ledger", "WRITE siding-redrive-orders.dlq-b"), want: []string{"READ on topic orders.dlq.ledger", ids[1]},
		},
		"on a target": {
			rights: without("WRITE siding-redrive-orders.dlq-a"), more: []string{"--target", "orders"},
			want: []string{"DESCRIBE_CONFIGS on topic orders", "WRITE on topic orders", ids[0]},
		},
		"on a retry topic as the target": {
			rights: without("READ orders.retry.5s", "WRITE orders.retry.5s"), more: []string{"--target", "orders.retry.5s"}, want: []string{"READ on topic orders.retry.5s", "WRITE on topic orders.retry.5s"},
		},
		"of retry topics": {
			rights: without("READ orders.retry.5s", "WRITE orders.retry.5s"), want: []string{"READ on topic orders.retry.5s", "WRITE on topic orders.retry.5s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := guarded(t, c.rights).as("ann").run(t, append([]string{"plan", "orders.dlq"}, c.more...)...)
			var named []string
			for _, m := range regexp.MustCompile(`not authorized: the user needs (.*): have it granted`).FindAllStringSubmatch(got.stderr, -1) {
				named = append(named, m[1])
			}
			if got.code != exitError || got.stdout != "" || !slices.Equal(named, c.want) {
				t.Errorf("%+v, it names %q, want %q", got, named, c.want)
			}
		})
	}
}

// aclOn is a right on a topic.
func aclOn(topic string, op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

// as is how commands are started by a user of a guarded broker, whose password is their name.
func (b *broker) as(user string) invocation {
	return invocation{now: time.Now, env: map[string]string{"SIDING_BROKERS": b.addr, "SIDING_SASL": "PLAIN", "SIDING_SASL_USER": user, "SIDING_SASL_PASSWORD": user}}
}

// guarded has letters of group billing, which has a member, and a user ann with some rights.
func guarded(t *testing.T, rights []kfake.ACL) *broker {
	t.Helper()
	admin := kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism())
	b := newBroker(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "ann", "ann", rights...)).open(t, admin)
	for _, topic := range []string{"orders", "orders.retry.5s", "orders.dlq", "orders.dlq.ledger"} {
		b.topic(t, topic, 1, nil)
	}
	// One that is settled, one that is open, and a copy of the first, of which the ledger is told when that goes.
	for _, offset := range []int64{7, 8, 7} {
		b.produce(t, letter("orders.dlq", 0, 0, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Original: headers.Position{Topic: "orders", Offset: offset, Timestamp: noon}}))
	}
	b.note(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: noon, By: "ada", Why: "x"})
	joined := make(chan struct{})
	member, err := kgo.NewClient(kgo.SeedBrokers(b.ListenAddrs()...), admin, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, _ map[string][]int32) { close(joined) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	<-joined
	member.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{"orders.retry.5s": {0: {Epoch: -1}}},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, err error) {
			if err != nil || r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Errorf("commit: %v, %+v", err, r)
			}
		})
	return b
}

func kind(r kmsg.ACLResourceType) string {
	switch r {
	case kmsg.ACLResourceTypeGroup:
		return "group"
	case kmsg.ACLResourceTypeTransactionalId:
		return "transactional-id"
	}
	return "topic"
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
