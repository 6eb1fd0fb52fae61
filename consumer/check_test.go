package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// notWorking returns the findings of features that do not work, as "state feature: why; do".
func notWorking(t *testing.T, cfg consumer.Config) string {
	t.Helper()
	found, err := consumer.Check(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	works := 0
	for _, f := range found {
		if f.State == consumer.FeatureWorks {
			works++
			continue
		}
		if f.Why == "" || f.Do == "" {
			t.Errorf("no reason or remedy: %+v", f)
		}
		lines = append(lines, string(f.State)+" "+f.Feature+": "+f.Why+"; "+f.Do)
	}
	if works == 0 {
		t.Error("no feature works")
	}
	return strings.Join(lines, "\n")
}

func TestCheck_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	k := consumertest.Start(t)
	cfg := consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: k.Opts(), Policy: consumer.Policy{Tiers: []time.Duration{time.Minute}},
		Handler: func(context.Context, *kgo.Record) error { return nil },
	}
	if got := notWorking(t, cfg); !strings.Contains(got, "lacking topic orders and its retry and dead-letter topics") || !strings.Contains(got, "orders") {
		t.Errorf("without the source:\n%s", got)
	}
	k.CreateTopic("orders", 2)
	if got := notWorking(t, cfg); !strings.Contains(got, "unknown topic orders and its retry and dead-letter topics: some do not exist yet") || !strings.Contains(got, "orders.retry.1m") {
		t.Errorf("with the source alone:\n%s", got)
	}
	verify := cfg
	verify.Provision.Mode = retrytopics.Verify
	if got := notWorking(t, verify); !strings.Contains(got, "unknown the user may join group billing: the group does not exist yet") {
		t.Errorf("before the group exists:\n%s", got)
	}
	if got := notWorking(t, verify); !strings.Contains(got, "lacking topic orders and its retry and dead-letter topics") {
		t.Errorf("with the source alone, verified:\n%s", got)
	}
	if err := k.Run(cfg).Stop(); err != nil {
		t.Fatal(err)
	}
	if got := notWorking(t, verify); strings.Contains(got, "orders") {
		t.Errorf("after a run:\n%s", got)
	}
	cfg.Group = ""
	if _, err := consumer.Check(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "Group") {
		t.Errorf("an invalid configuration: %v", err)
	}
}

func TestCheck_NamesTheMissingPermissions(t *testing.T) {
	t.Parallel()
	allow := func(resource kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "ann", "ann",
		allow(kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLOperationRead), allow(kmsg.ACLResourceTypeTopic, "orders.retry.1m", kmsg.ACLOperationRead),
		allow(kmsg.ACLResourceTypeTopic, "orders.retry.1m", kmsg.ACLOperationWrite), allow(kmsg.ACLResourceTypeTopic, "orders.dlq", kmsg.ACLOperationDescribe)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	as := func(user string) []kgo.Opt {
		return []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.SASL(plain.Auth{User: user, Pass: user}.AsMechanism())}
	}
	k := consumertest.On(t, as("admin")...)
	k.CreateTopic("orders", 1)
	cfg := consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: as("admin"), Policy: consumer.Policy{Tiers: []time.Duration{time.Minute}},
		Handler: func(context.Context, *kgo.Record) error { return nil },
	}
	if err := k.Run(cfg).Stop(); err != nil {
		t.Fatal(err)
	}
	if got := notWorking(t, cfg); strings.Contains(got, "the user") {
		t.Errorf("as a superuser:\n%s", got)
	}
	cfg.Kafka = as("ann")
	got := notWorking(t, cfg)
	for _, want := range []string{"the user lacks WRITE on topic orders.dlq;", "the user lacks READ on group billing;"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}
