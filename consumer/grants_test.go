package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// soonGranted is how long after a right was granted all may work that waited for it: copies are tried again within 15 s, and a record
// that is retried waits 5 s.
const soonGranted = 30 * time.Second

// endsWithout are the rights without which Run ends at the start, with an error that names what is missing.
var endsWithout = []string{
	"READ on billing", "READ on orders",
	"DESCRIBE_CONFIGS on orders", "DESCRIBE_CONFIGS on orders.retry.5s", "DESCRIBE_CONFIGS on orders.dlq",
	"DESCRIBE on orders.dlq.ledger", "DESCRIBE_CONFIGS on orders.dlq.ledger",
	"CREATE on orders.retry.5s", "CREATE on orders.dlq", "CREATE on orders.dlq.ledger",
}

// Trap 31: a right to write is granted after a refusal, and the producer stays failed until the process restarts. kgo keeps it for the
// client's life that a broker refused it a producer id, which a broker does while the user may write to no topic at all.
//
// docs/operations.md says of its table of rights that no restart is needed: so each is missing at the start or taken away while the
// consumer runs, for some minutes, and granted then.
func TestRights_NoneNeedsARestartOnceItIsGranted(t *testing.T) {
	t.Parallel()
	always, verify, create := documentedRights(t)
	for _, of := range []struct {
		mode   retrytopics.Mode
		rights []kfake.ACL
		others []kfake.ACL
	}{
		{retrytopics.Off, always, nil},
		{retrytopics.Verify, verify, always},
		{retrytopics.Create, create, slices.Concat(always, verify)},
	} {
		for i, right := range of.rights {
			others := slices.Concat(of.others, of.rights[:i], of.rights[i+1:])
			name := fmt.Sprint(right.Operation, " on ", right.Name)
			t.Run("without "+name, func(t *testing.T) {
				t.Parallel()
				granted(t, of.mode, others, []kfake.ACL{right}, slices.Contains(endsWithout, name))
			})
			t.Run("withdrawn "+name, func(t *testing.T) {
				t.Parallel()
				withdrawn(t, of.mode, others, []kfake.ACL{right})
			})
		}
	}
	var write []kfake.ACL
	others := slices.DeleteFunc(slices.Clone(always), func(r kfake.ACL) bool {
		if r.Operation == kmsg.ACLOperationWrite {
			write = append(write, r)
			return true
		}
		return false
	})
	t.Run("without any WRITE", func(t *testing.T) {
		t.Parallel()
		granted(t, retrytopics.Off, others, write, false)
	})
	t.Run("withdrawn every WRITE", func(t *testing.T) {
		t.Parallel()
		withdrawn(t, retrytopics.Off, others, write)
	})
}

// granted runs a consumer without some rights, and grants them.
func granted(t *testing.T, mode retrytopics.Mode, rights, missing []kfake.ACL, ends bool) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceWith(t, mode, rights...)
		s.source()
		s.start()
		s.produce(0)
		time.Sleep(3 * time.Minute)
		select {
		case err := <-s.ended:
			if !ends || err == nil {
				t.Fatalf("the consumer ended: %v", err)
			}
			return
		default:
		}
		if ends {
			t.Fatal("the consumer runs, and ought to say what is missing")
		}
		s.grant(missing...)
		s.over(0, 2)
	})
}

// withdrawn takes rights away while a consumer runs, and gives them back.
func withdrawn(t *testing.T, mode retrytopics.Mode, rights, gone []kfake.ACL) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceWith(t, mode, slices.Concat(rights, gone)...)
		s.source()
		s.start()
		s.produce(0)
		s.done(0, 2)
		s.withdraw(gone...)
		s.produce(0)
		if mode == retrytopics.Create {
			s.grow(2)
			s.produce(1)
		}
		time.Sleep(3 * time.Minute)
		s.grant(gone...)
		if mode == retrytopics.Create {
			s.done(1, 2)
		}
		s.over(0, 4)
	})
}

// serviceWith starts a broker and prepares a consumer with these rights.
func serviceWith(t *testing.T, mode retrytopics.Mode, rights ...kfake.ACL) *grantee {
	t.Helper()
	var vn kfake.VirtualNetwork
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "secret"), kfake.User("PLAIN", "billing", "secret", rights...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	// A fetch that is refused is answered at once, kgo asks again at once, and in virtual time none passes meanwhile.
	cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		time.Sleep(50 * time.Millisecond)
		return nil, nil, false
	})
	as := func(user string) []kgo.Opt {
		return []kgo.Opt{
			kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(vn.DialContext), kgo.SASL(plain.Auth{User: user, Pass: "secret"}.AsMechanism()),
		}
	}
	cl, err := kgo.NewClient(append(as("admin"), kgo.MetadataMinAge(50*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &grantee{service: &service{t: t, admin: kadm.NewClient(cl), client: cl, kafka: as("billing"), mode: mode}}
}

// grantee is a service whose rights change.
type grantee struct {
	*service
	c        *consumer.Consumer
	ended    chan error
	end      context.CancelFunc
	expelled bool // it lost the right on its group meanwhile
}

// source makes the topics that the consumer does not make.
func (s *grantee) source() {
	s.create("orders", 1)
	if s.mode != retrytopics.Create {
		for _, topic := range []string{"orders.retry.5s", "orders.dlq", "orders.dlq.ledger"} {
			s.create(topic, 1)
		}
	}
}

func (s *grantee) start() {
	s.t.Helper()
	c, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: s.kafka, Logger: slog.New(slog.DiscardHandler),
		Policy:    consumer.Policy{Tiers: []time.Duration{5 * time.Second}, Jitter: -1},
		Provision: retrytopics.Spec{Mode: s.mode},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			switch {
			case string(r.Value) == "never":
				return classify.Terminal(errBusy)
			case consumer.FactsOf(ctx, r).Attempt == 1:
				return classify.Retryable(errBusy)
			}
			return nil
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.c, s.end, s.ended = c, cancel, make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ended <- c.Run(ctx)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// produce writes a record that is retried and one that is dead-lettered.
func (s *grantee) produce(partition int32) {
	s.t.Helper()
	for _, value := range []string{"later", "never"} {
		if err := s.client.ProduceSync(s.t.Context(), &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(value)}).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *grantee) grow(to int) {
	s.t.Helper()
	if _, err := s.admin.UpdatePartitions(s.t.Context(), to, "orders"); err != nil {
		s.t.Fatal(err)
	}
	s.client.ForceMetadataRefresh()
	time.Sleep(time.Second)
}

// done waits until all records of a partition were retried or dead-lettered, once each, and that is committed.
func (s *grantee) done(partition int32, records int64) {
	s.t.Helper()
	since := time.Now()
	for {
		source, tier := s.committed("orders", partition), s.committed("orders.retry.5s", partition)
		if source == records && tier == records/2 {
			break
		}
		select {
		case err := <-s.ended:
			s.t.Fatalf("the consumer ended: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(since) > soonGranted {
			s.t.Fatalf("the group stands at %d of %d on the source and at %d of %d on the retry topic %v after the right was granted; health is %+v",
				source, records, tier, records/2, time.Since(since), s.c.Health())
		}
	}
	ends, err := s.admin.ListEndOffsets(s.t.Context(), "orders.retry.5s", "orders.dlq")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, topic := range []string{"orders.retry.5s", "orders.dlq"} {
		// A member that is expelled runs again what was not committed.
		if o, _ := ends.Lookup(topic, partition); o.Offset < records/2 || o.Offset > records/2 && !s.expelled {
			s.t.Errorf("%d copies on %s/%d, want %d, one of each", o.Offset, topic, partition, records/2)
		}
	}
}

// over is done, and ends the consumer.
func (s *grantee) over(partition int32, records int64) {
	s.t.Helper()
	s.done(partition, records)
	for since := time.Now(); !s.c.Health().OK; time.Sleep(100 * time.Millisecond) {
		if time.Since(since) > 2*time.Minute { // a refusal to read counts for one
			s.t.Fatalf("health stays %+v", s.c.Health())
		}
	}
	s.end()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
}

func (s *grantee) grant(rights ...kfake.ACL) {
	s.t.Helper()
	for _, right := range rights {
		rs, err := s.admin.CreateACLs(s.t.Context(), rule(right))
		if err != nil || rs[0].Err != nil {
			s.t.Fatal(err, rs)
		}
	}
}

func (s *grantee) withdraw(rights ...kfake.ACL) {
	s.t.Helper()
	for _, right := range rights {
		s.expelled = s.expelled || right.Resource == kmsg.ACLResourceTypeGroup
		rs, err := s.admin.DeleteACLs(s.t.Context(), rule(right))
		if err != nil || rs[0].Err != nil || len(rs[0].Deleted) != 1 {
			s.t.Fatal(err, rs)
		}
	}
}

// rule is a right of the service as a client names it.
func rule(right kfake.ACL) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow("User:billing").AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral).Operations(right.Operation)
	if right.Resource == kmsg.ACLResourceTypeGroup {
		return b.Groups(right.Name)
	}
	return b.Topics(right.Name)
}
