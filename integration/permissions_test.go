package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration"
	"github.com/sidingkafka/siding/redrive"
)

// denying is a broker that permits what no rule is about.
var denying = integration.Shared{Options: append(settings.options(),
	integration.WithConfig("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
	integration.WithConfig("allow.everyone.if.no.acl.found", "true"),
)}

// A plan finds the permissions that a run lacks, without using them. It cannot name topics that a
// broker hides, and says so.
func TestAPlanFindsOutWhatTheUserMayDo(t *testing.T) {
	t.Parallel()
	kafka := denying.Kafka(t)
	k := consumertest.On(t, kafka.Opts()...)
	k.CreateTopic("orders", 1)
	k.Run(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Second, time.Hour}},
		Handler: func(context.Context, *kgo.Record) error { return classify.Terminal(errors.New("no")) },
	})
	k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("x")})[0], headers.ReasonTerminal)
	r, err := redrive.New(redrive.Config{Kafka: kafka.Opts()})
	must(t, err)
	plan := func(target string) (*redrive.Plan, error) {
		return r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: target}})
	}
	if p, err := plan(""); err != nil || !slices.Equal(p.Watched, []string{"orders.retry.1s", "orders.retry.1h"}) {
		t.Fatalf("with all permissions: %+v, %v", p, err)
	}
	admin := kadm.NewClient(client(t, kafka))
	deny := func(b *kadm.ACLBuilder) {
		t.Helper()
		rs, err := admin.CreateACLs(t.Context(), b.Deny("User:ANONYMOUS").DenyHosts("*").ResourcePatternType(kadm.ACLPatternLiteral))
		for _, r := range rs {
			err = errors.Join(err, r.Err)
		}
		must(t, err)
	}
	until := func(target string, want ...string) {
		t.Helper()
		// A rule takes effect with a delay.
		eventually(t, time.Minute, func() error {
			_, err := plan(target)
			if err != nil && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
				return nil
			}
			return fmt.Errorf("the plan to %q: %w, want %q in it", target, err, want)
		})
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
	until("", "no retry topic of orders that this user may see has a committed offset of group billing on partition 0: grant READ and WRITE on its retry topics")
}

// Users log in to this broker. The admin may do everything, the others what they were granted.
func TestUsers_OfABrokerThatRefusesThem(t *testing.T) {
	t.Parallel()
	kafka := ownKafka(t, integration.WithUser("admin", "secret"), integration.WithUser("clerk", "secret"), integration.WithUser("guest", "secret"),
		integration.WithConfig("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
		integration.WithConfig("super.users", "User:ANONYMOUS;User:admin"))
	t.Run("refuses at the start", func(t *testing.T) {
		t.Parallel()
		refusedAtTheStart(t, kafka)
	})
	t.Run("grants the right to write later", func(t *testing.T) {
		t.Parallel()
		grantedLater(t, kafka)
	})
}

// allow grants a user permissions.
func allow(t *testing.T, admin *kadm.Client, user string, b *kadm.ACLBuilder) {
	t.Helper()
	rs, err := admin.CreateACLs(t.Context(), b.Allow("User:"+user).AllowHosts("*"))
	for _, r := range rs {
		err = errors.Join(err, r.Err)
	}
	must(t, err)
}

// maySee waits until a user may describe a topic and its configuration: a rule takes effect with a
// delay.
func maySee(t *testing.T, user *kadm.Client, topic string) {
	t.Helper()
	eventually(t, 2*time.Minute, func() error {
		topics, err := user.ListTopics(t.Context(), topic)
		configs, configsErr := user.DescribeTopicConfigs(t.Context(), topic)
		if err = errors.Join(err, topics.Error(), configsErr); err == nil {
			_, err = configs.On(topic, func(c *kadm.ResourceConfig) error { return c.Err })
		}
		return err
	})
}

// A consumer that the broker refused tried again for ever, with health OK. The embedded broker
// closes the connection on a wrong password; Kafka reports it.
func refusedAtTheStart(t *testing.T, kafka *integration.Kafka) {
	t.Helper()
	admin := kadm.NewClient(client(t, kafka))
	consumertest.On(t, kafka.Opts()...).CreateTopic("orders", 1)
	allow(t, admin, "guest", kadm.NewACLs().Groups("settlement").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpDescribe))
	allow(t, admin, "guest", kadm.NewACLs().Topics("orders").ResourcePatternType(kadm.ACLPatternPrefixed).Operations(kadm.OpAll))
	maySee(t, kadm.NewClient(client(t, kafka, kafka.As("guest", "secret")...)), "orders")
	for name, c := range map[string]struct {
		group string
		opts  []kgo.Opt
		want  error
		words string
	}{
		"a wrong password":                        {"settlement", kafka.As("guest", "guessed"), kerr.SaslAuthenticationFailed, ""},
		"an unknown user":                         {"settlement", kafka.As("shipping", "secret"), kerr.SaslAuthenticationFailed, ""},
		"a group that may not be seen":            {"clearing", kafka.As("guest", "secret"), kerr.GroupAuthorizationFailed, `"clearing"`},
		"a group that may not be joined":          {"settlement", kafka.As("guest", "secret"), kerr.GroupAuthorizationFailed, `"settlement"`},
		"a group that may not be joined, KIP-848": {"settlement", append(kafka.As("guest", "secret"), kgo.ServerSideBalancer()), kerr.GroupAuthorizationFailed, `"settlement"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := consumertest.On(t, c.opts...).Begin(consumer.Config{
				Group: c.group, Topics: []string{"orders"}, Handler: func(context.Context, *kgo.Record) error { return nil },
			})
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			select {
			case err := <-ended:
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
					t.Errorf("Run returned %v, want %v with %q in it", err, c.want, c.words)
				}
			case <-time.After(time.Minute):
				t.Errorf("Run goes on, and health is %+v", run.Health())
			}
		})
	}
}

// A consumer had no permission to write when its first copies failed. It then wrote none until a
// restart, which is trap 31.
func grantedLater(t *testing.T, kafka *integration.Kafka) {
	t.Helper()
	admin := kadm.NewClient(client(t, kafka))
	consumertest.On(t, kafka.Opts()...).CreateTopic("parcels", 1)
	onParcels := func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics("parcels").ResourcePatternType(kadm.ACLPatternPrefixed)
	}
	allow(t, admin, "clerk", kadm.NewACLs().Groups("billing").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpRead))
	allow(t, admin, "clerk", onParcels().Operations(kadm.OpRead, kadm.OpCreate, kadm.OpAlter, kadm.OpDescribeConfigs))
	maySee(t, kadm.NewClient(client(t, kafka, kafka.As("clerk", "secret")...)), "parcels")
	k := consumertest.On(t, kafka.As("clerk", "secret")...)
	c := k.Run(consumer.Config{
		Group: "billing", Topics: []string{"parcels"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Second}},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			switch {
			case string(r.Value) == "bad":
				return classify.Terminal(errors.New("no such SKU"))
			case consumer.DeliveryOf(ctx, r).Attempt == 1:
				return classify.Retryable(errors.New("busy"))
			}
			return nil
		},
	})
	records := []*kgo.Record{{Topic: "parcels", Value: []byte("bad")}, {Topic: "parcels", Value: []byte("busy")}}
	must(t, client(t, kafka).ProduceSync(t.Context(), records...).FirstErr())
	var why string
	eventually(t, time.Minute, func() error {
		h := c.Health()
		if len(h.Lanes) > 0 {
			why = h.Lanes[0].Why
		}
		if strings.Contains(why, "AUTHORIZATION_FAILED") {
			return nil
		}
		return fmt.Errorf("health is %+v, want that the copy is refused", h)
	})
	allow(t, admin, "clerk", onParcels().Operations(kadm.OpWrite))
	// How soon is proven in virtual time, by consumer/consumer_permissions_test.go.
	k.Patience = 2 * time.Minute
	began := time.Now()
	k.DeadLettered(records[0], headers.ReasonTerminal)
	k.Handled(records[1], 1)
	t.Logf("it was refused (%s), and both copies were written %v after the grant", why, time.Since(began))
}
