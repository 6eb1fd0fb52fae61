package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
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

// The bubble fails the test if a goroutine outlives Run.
func TestConsumer_WaitsForABrokerThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork // on which no broker listens
		var dials atomic.Int32
		cfg := config(handle)
		log := logged(&cfg)
		cfg.Kafka = []kgo.Opt{kgo.SeedBrokers("127.0.0.1:9092"), kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return vn.DialContext(ctx, network, address)
		})}
		c, err := consumer.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := dials.Load(); n != 0 {
			t.Errorf("%d connections before Run", n)
		}
		ctx, cancel := context.WithCancel(context.Background())
		returned := make(chan error, 1)
		go func() { returned <- c.Run(ctx) }()
		time.Sleep(time.Hour)
		logged, dialed := log.with("trying again", "connecting to Kafka", "port 9092"), dials.Load()
		if logged < 3 || logged > 400 {
			t.Errorf("the log has %d lines in an hour that Kafka cannot be reached; want a few at least, and at most one in 10 s", logged)
		}
		if dialed < 3 || dialed > 10_000 {
			t.Errorf("%d dials in an hour: want tries, with backoff", dialed)
		}
		select {
		case err := <-returned:
			t.Fatalf("Run returned %v while the broker is down", err)
		case <-c.Ready():
			t.Error("ready without a broker")
		default:
		}
		if h := c.Health(); h.Started || len(h.Lanes) != 0 {
			t.Errorf("health is %+v", h)
		}
		began := time.Now()
		cancel()
		if err := <-returned; err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("Run took %v to end", took)
		}
	})
}

// A static member that restarts gets its partitions back without a rebalance.
func TestConsumerGroup_StaticMemberKeepsItsPartitions(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Kafka = []kgo.Opt{kgo.InstanceID("billing-0")}
		cfg.Policy.Jitter = -1 // retries come in order, so that none is done beyond one that is not
		c := k.Run(cfg)
		first := k.Produce(many(20)...)
		k.Handled(first[0], 1)
		stop(t, c)
		k.Run(cfg)
		handledOnce(k, append(first, k.Produce(many(20)...)...))
		k.Conserved()
	})
}

// counting counts the bytes on connections, and the records that were read.
type counting struct{ connects, fetched atomic.Int32 }

func (h *counting) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		h.connects.Add(1)
	}
}
func (h *counting) OnFetchRecordBuffered(*kgo.Record) { h.fetched.Add(1) }

// The options of the user reach every client.
func TestClientFactory_KeepsTheUsersHooks(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var hook counting
		cfg := config(busyOnce)
		cfg.Kafka = []kgo.Opt{kgo.WithHooks(&hook), kgo.Rack("eu-1a"), kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerLinger(time.Millisecond)}
		k.Run(cfg)
		k.Handled(k.Produce(many(1)...)[0], 1)
		if connects, fetched := hook.connects.Load(), hook.fetched.Load(); connects < 3 || fetched < 2 {
			t.Errorf("the hook saw %d connections and %d records, want one of each client, and the record and its copy", connects, fetched)
		}
	})
}

// Run took wrong credentials for a broker that cannot be reached, and tried for ever. Then it
// returned the bare error of Kafka, which names neither a broker nor a remedy.
func TestConsumer_WrongCredentialsEndTheStart(t *testing.T) {
	t.Parallel()
	for hint, refusal := range map[string]struct {
		key kmsg.Key
		err *kerr.Error
	}{
		"that listener refuses the credentials": {kmsg.SASLAuthenticate, kerr.SaslAuthenticationFailed},
		"that listener takes no credentials":    {kmsg.SASLHandshake, kerr.IllegalSaslState},
		"that listener has other mechanisms":    {kmsg.SASLHandshake, kerr.UnsupportedSaslMechanism},
	} {
		t.Run(refusal.err.Message, func(t *testing.T) {
			t.Parallel()
			wrongCredentials(t, refusal.key, refusal.err, hint)
		})
	}
}

func wrongCredentials(t *testing.T, key kmsg.Key, refusal *kerr.Error, hint string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.EnableSASL(), kfake.Superuser("PLAIN", "billing", "secret"), kfake.SeedTopics(1, "orders"))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		// This is Kafka's answer. The embedded broker hangs up, as a restarting broker does.
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, TopLevel: true, Count: -1, Err: refusal})
		cfg := config(fine)
		cfg.Logger = slog.New(slog.DiscardHandler)
		cfg.Kafka = []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(vn.DialContext), kgo.SASL(plain.Auth{User: "billing", Pass: "guessed"}.AsMechanism())}
		c, err := consumer.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		broker := cluster.ListenAddrs()[0]
		if err := c.Run(ctx); !errors.Is(err, refusal) || !strings.Contains(err.Error(), "connecting to "+broker+": ") || !strings.Contains(err.Error(), hint) {
			t.Errorf("Run returned %v, want %v of %s, and that %s", err, refusal, broker, hint)
		}
	})
}

// The permission to join was missing: the member was refused for ever, and Run never reported it.
func TestConsumer_ForbiddenGroupEndsTheStart(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Count: -1, Err: kerr.GroupAuthorizationFailed})
		if err := k.Begin(config(fine)).Wait(); !errors.Is(err, kerr.GroupAuthorizationFailed) || !strings.Contains(err.Error(), `"billing"`) {
			t.Errorf("Run returned %v, want that the group may not be joined", err)
		}
	})
}
