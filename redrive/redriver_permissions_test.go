package redrive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// errands are what an operator does, by the columns of the table of permissions in
// docs/operations.md, with the client options of one whose permissions are limited.
var errands = []func(context.Context, []kgo.Opt) error{
	func(ctx context.Context, opts []kgo.Opt) error { // look
		s, err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", opts...).Summarize(ctx, dlq.Filter{}, dlq.Cursor{}, nil)
		if err == nil && s.Open == 0 {
			err = errors.New("there is nothing")
		}
		return err
	},
	func(ctx context.Context, opts []kgo.Opt) error { // run
		r, err := redrive.New(redrive.Config{Kafka: opts})
		if err != nil {
			return err
		}
		p, err := r.Plan(ctx, redrive.Selection{Topic: "orders.dlq"})
		if err != nil {
			return err
		}
		o, err := r.Run(ctx, p, ann(redrive.Pace{}, nil))
		if err == nil && o.Counts.Succeeded != 3 {
			err = fmt.Errorf("the outcome is %+v", o)
		}
		return err
	},
	func(ctx context.Context, opts []kgo.Opt) error { // discard
		l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", opts...)
		_, err := l.Discard(ctx, dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ann", Why: "OPS-1"})
		if err == nil {
			_, err = l.Reopen(ctx, dlq.Filter{}, dlq.Cursor{}, dlq.ReopenOptions{By: "ann", Why: "OPS-2"})
		}
		return err
	},
	func(ctx context.Context, opts []kgo.Opt) error { // import
		var file bytes.Buffer
		if _, err := dlq.Export(&file, dlq.NewLedger("orders.dlq", "orders.dlq.ledger", opts...).Letters(ctx, dlq.Filter{}, dlq.Cursor{}, dlq.WithResolved)); err != nil {
			return err
		}
		_, err := dlq.Import(ctx, "orders.dlq", bytes.NewReader(file.Bytes()), dlq.ImportOptions{KeepTimestamps: true}, opts...)
		return err
	},
	func(ctx context.Context, opts []kgo.Opt) error { // prune
		l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", opts...)
		p, err := l.Prunable(ctx, time.Now().Add(-30*time.Second), nil)
		if err != nil {
			return err
		}
		return l.Prune(ctx, p, dlq.PruneOptions{})
	},
}

// A missing permission stops an operator at night, and a needless one was never reviewed. So each
// errand is done with exactly the table, with each permission missing, and with no more than
// DESCRIBE in its place.
func TestRedriver_NeedsTheDocumentedPermissions(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	columns := documentedRights(t)
	for i, errand := range errands {
		all := columns[i]
		if i > 0 { // it looks first
			all = slices.Concat(columns[0], all)
		}
		t.Run(fmt.Sprint("column ", i), func(t *testing.T) {
			t.Parallel()
			if err := doneWith(t, errand, all); err != nil {
				t.Fatalf("with all rights: %v", err)
			}
			for j, right := range all {
				t.Run(fmt.Sprint(right.Operation, " on ", right.Name), func(t *testing.T) {
					t.Parallel()
					others := slices.Concat(all[:j], all[j+1:])
					if err := doneWith(t, errand, others); err == nil {
						t.Error("works as well without it")
					}
					if i > 0 && j < len(columns[0]) { // to look with DESCRIBE is the first column's
						return
					}
					// which brokers take to be included
					if right.Operation = kmsg.ACLOperationDescribe; all[j].Operation != right.Operation && doneWith(t, errand, append(others, right)) == nil {
						t.Error("works as well with DESCRIBE")
					}
				})
			}
		})
	}
}

// documentedRights reads the table by its columns.
func documentedRights(t *testing.T) (columns [][]kfake.ACL) {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### Permissions for redriving\n")
	table, _, _ = strings.Cut(table, "\n## ")
	columns = make([][]kfake.ACL, len(errands))
	name := regexp.MustCompile("^ (group|topic|transactional id) `([^`]+)`")
	right := regexp.MustCompile("`([A-Z_]+)`")
	resources := map[string]kmsg.ACLResourceType{
		"group": kmsg.ACLResourceTypeGroup, "topic": kmsg.ACLResourceTypeTopic, "transactional id": kmsg.ACLResourceTypeTransactionalId,
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != len(columns)+3 {
			continue
		}
		of := name.FindStringSubmatch(cells[1])
		if of == nil {
			continue
		}
		for i := range columns {
			for _, m := range right.FindAllStringSubmatch(cells[2+i], -1) {
				operation, err := kmsg.ParseACLOperation(m[1])
				if err != nil {
					t.Fatal(err)
				}
				columns[i] = append(columns[i], kfake.ACL{
					Resource: resources[of[1]], Name: of[2], Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true,
				})
			}
		}
	}
	for i, c := range columns {
		if len(c) == 0 {
			t.Fatalf("docs/operations.md has no rights in column %d", i)
		}
	}
	return columns
}

// guarded starts a cluster on which ann has some permissions, and admin has all. It returns the
// options of their clients. It works only in a bubble.
func guarded(t *testing.T, rights []kfake.ACL) (as func(user string) []kgo.Opt) {
	t.Helper()
	var vn kfake.VirtualNetwork
	cluster, err := bubble.NewCluster(&vn, kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "secret"), kfake.User("PLAIN", "ann", "secret", rights...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return func(user string) []kgo.Opt {
		return append(bubble.Opts(&vn),
			kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.MetadataMinAge(50*time.Millisecond),
			kgo.SASL(plain.Auth{User: user, Pass: "secret"}.AsMechanism()),
		)
	}
}

// doneWith does an errand with these permissions, after an incident whose bug was fixed.
func doneWith(t *testing.T, errand func(context.Context, []kgo.Opt) error, rights []kfake.ACL) (err error) {
	synctest.Test(t, func(t *testing.T) {
		as := guarded(t, rights)
		k := consumertest.On(t, as("admin")...)
		k.CreateTopic("orders", 1)
		s := newService("tax", "old")
		cfg := s.config()
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{5 * time.Second}}
		incident(k, cfg, 3, "tax", "old")
		s.has()
		history(t, as("admin"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		err = errand(ctx, as("ann"))
	})
	return err
}

// history prepares the topics: the ledger has entries, and an open letter and a discarded one each
// have a copy that is a minute younger.
func history(t *testing.T, admin []kgo.Opt) {
	t.Helper()
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", admin...)
	if n, err := l.Discard(t.Context(), dlq.Filter{Classes: []string{"old"}}, dlq.Cursor{}, dlq.DiscardOptions{By: "admin", Why: "history"}); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	time.Sleep(time.Minute)
	cl, err := kgo.NewClient(append(admin, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, class := range []string{"tax", "old"} {
		for letter, err := range l.Letters(t.Context(), dlq.Filter{Classes: []string{class}}, dlq.Cursor{}, dlq.WithResolved) {
			if err != nil {
				t.Fatal(err)
			}
			of := letter.Record
			again := &kgo.Record{Topic: of.Topic, Partition: of.Partition, Key: of.Key, Value: of.Value, Headers: of.Headers}
			if err := cl.ProduceSync(t.Context(), again).FirstErr(); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
}
