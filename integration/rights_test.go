package integration_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration"
	"github.com/sidingkafka/siding/redrive"
)

// A plan finds the rights that a run lacks without using them. What a broker hides it can't name, and says so.
func TestAPlanFindsOutWhatTheUserMayDo(t *testing.T) {
	t.Parallel()
	ownBrokers(t)
	kafka := integration.StartKafka(t,
		integration.WithConfig("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
		integration.WithConfig("allow.everyone.if.no.acl.found", "true"))
	k := consumertest.On(t, kafka.Opts()...)
	k.CreateTopic("orders", 1)
	k.Run(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Second, time.Hour}},
		Handler: func(context.Context, *kgo.Record) error { return classify.Terminal(errors.New("no")) },
	})
	k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("x")})[0], headers.ReasonTerminal)
	r, err := redrive.New(redrive.Config{Kafka: kafka.Opts(), By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	plan := func(target string) (*redrive.Plan, error) {
		return r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: target}})
	}
	if p, err := plan(""); err != nil || !slices.Equal(p.Watched, []string{"orders.retry.1s", "orders.retry.1h"}) {
		t.Fatalf("with all rights: %+v, %v", p, err)
	}
	admin := kadm.NewClient(client(t, kafka))
	deny := func(b *kadm.ACLBuilder) {
		t.Helper()
		rs, err := admin.CreateACLs(t.Context(), b.Deny("User:ANONYMOUS").DenyHosts("*").ResourcePatternType(kadm.ACLPatternLiteral))
		for _, r := range rs {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	until := func(target string, want ...string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) { // a rule takes a moment
			_, err := plan(target)
			if err != nil && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the plan to %q: %v, want %q in it", target, err, want)
			}
		}
	}
	deny(kadm.NewACLs().TransactionalIDs("siding-redrive-orders.dlq-b").Operations(kadm.OpAll))
	until("", "needs WRITE on transactional-id siding-redrive-orders.dlq-b")
	deny(kadm.NewACLs().Topics("orders").Operations(kadm.OpAll))
	until("orders", "needs DESCRIBE_CONFIGS on topic orders:", "needs WRITE on topic orders:", "needs WRITE on transactional-id siding-redrive-orders.dlq-b")
	if rs, err := admin.DeleteACLs(t.Context(), kadm.NewACLs().Deny("User:ANONYMOUS").DenyHosts("*").TransactionalIDs("siding-redrive-orders.dlq-b").
		ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpAll)); err != nil || rs[0].Err != nil {
		t.Fatal(err, rs)
	}
	deny(kadm.NewACLs().Topics("orders.retry.1s", "orders.retry.1h").Operations(kadm.OpAll))
	until("", "no retry topic of orders has a committed offset of group billing on partition 0 that this user may see: have READ and WRITE on its retry topics granted")
}
