package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A consumer that was in no group, since its coordinator refused it, had no lanes, and its health was OK.
func TestHealth_AConsumerThatIsInNoGroupIsNotOK(t *testing.T) {
	each(t, protocols, 2, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		cfg := config(fine)
		cfg.Kafka = opts
		c := k.Run(cfg)
		k.Handled(k.Produce(many(1)...)[0], 1)
		time.Sleep(time.Hour) // idle, with nothing to commit
		if h := c.Health(); !h.OK || !h.Group.Joined {
			t.Fatalf("health of an idle member is %+v", h)
		}
		fault := k.Cluster.Fault(kfake.Fault{
			Keys:     []kmsg.Key{kmsg.JoinGroup, kmsg.Heartbeat, kmsg.ConsumerGroupHeartbeat},
			TopLevel: true, Count: -1, Err: kerr.GroupAuthorizationFailed,
		})
		time.Sleep(30 * time.Second)
		if h := c.Health(); !h.OK || h.Group.Joined {
			t.Errorf("health is %+v while the consumer has been joining for 30 s; want joining, and OK still", h)
		}
		time.Sleep(2 * time.Minute)
		if h := c.Health(); h.OK || h.Group.Joined || !strings.Contains(h.Group.Why, "GROUP_AUTHORIZATION_FAILED") {
			t.Errorf("health is %+v while the coordinator refuses the member; want joining, since it may not, and not OK", h)
		}
		fault.Remove()
		k.Handled(k.Produce(many(1)...)[0], 1)
		if h := c.Health(); !h.OK || !h.Group.Joined || h.Group.Why != "" {
			t.Errorf("health is %+v once the member is back", h)
		}
	})
}

// A consumer that had ended counted as one that joins, and its health was not OK from a minute and
// a half later on.
func TestHealth_OfAConsumerThatEndedIsOK(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		c := k.Run(config(fine))
		k.Handled(k.Produce(many(1)...)[0], 1)
		stop(t, c)
		time.Sleep(time.Hour)
		if h := c.Health(); !h.OK || h.Group != (consumer.GroupHealth{}) {
			t.Errorf("health is %+v an hour after the end; want OK, and in no group", h)
		}
	})
}

// No commit was accepted for ten minutes, and health was OK.
func TestHealth_CommitsThatFailAreNotOK(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		c := k.Run(config(fine))
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Handled(k.Produce(many(1)...)[0], 1)
		time.Sleep(30 * time.Second)
		if h := c.Health(); !h.OK || h.Group.CommitsFailSince.IsZero() {
			t.Errorf("health is %+v after 30 s without a commit; want to hear of it, and OK still", h)
		}
		time.Sleep(2 * time.Minute)
		if h := c.Health(); h.OK || !strings.Contains(h.Group.CommitError, "TOPIC_AUTHORIZATION_FAILED") {
			t.Errorf("health is %+v while no commit is accepted", h)
		}
		fault.Remove()
		time.Sleep(time.Second)
		if h := c.Health(); !h.OK || !h.Group.CommitsFailSince.IsZero() || h.Group.CommitError != "" {
			t.Errorf("health is %+v once commits are accepted", h)
		}
	})
}

// Credentials that are wrong were taken for a broker that cannot be reached: Run tried for ever.
func TestStart_WrongCredentialsEndTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.EnableSASL(), kfake.Superuser("PLAIN", "billing", "secret"), kfake.SeedTopics(1, "orders"))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		// As Kafka does. The embedded broker hangs up, which is what one does that restarts.
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, TopLevel: true, Count: -1, Err: kerr.SaslAuthenticationFailed})
		cfg := config(fine)
		cfg.Logger = slog.New(slog.DiscardHandler)
		cfg.Kafka = []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(vn.DialContext), kgo.SASL(plain.Auth{User: "billing", Pass: "guessed"}.AsMechanism())}
		c, err := consumer.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Run(ctx); !errors.Is(err, kerr.SaslAuthenticationFailed) {
			t.Errorf("Run returned %v, want that the credentials were refused", err)
		}
	})
}

// The right to join was missing: the member was refused for ever, and Run never said so.
func TestStart_AGroupThatMayNotBeJoinedEndsTheStart(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Count: -1, Err: kerr.GroupAuthorizationFailed})
		if err := k.Begin(config(fine)).Wait(); !errors.Is(err, kerr.GroupAuthorizationFailed) || !strings.Contains(err.Error(), `"billing"`) {
			t.Errorf("Run returned %v, want that the group may not be joined", err)
		}
	})
}
