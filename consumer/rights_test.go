package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
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

// The table of rights in docs/operations.md is what an operator grants: one right too few and the service stands still, one
// too many and it holds what nobody reviewed. So a consumer runs with exactly the table, and with each right missing.
func TestTheDocumentedRightsAreEnoughAndNoneIsTooMany(t *testing.T) {
	t.Parallel()
	always, verify, create := documentedRights(t)
	for _, test := range []struct {
		mode   retrytopics.Mode
		rights []kfake.ACL // of these none is too many
		others []kfake.ACL
	}{
		{retrytopics.Off, always, nil},
		{retrytopics.Verify, verify, always},
		{retrytopics.Create, create, slices.Concat(always, verify)},
	} {
		t.Run(test.mode.String(), func(t *testing.T) {
			t.Parallel()
			if err := worksWith(t, test.mode, slices.Concat(test.others, test.rights)); err != nil {
				t.Fatalf("with all rights: %v", err)
			}
			for i, right := range test.rights {
				t.Run(fmt.Sprint(right.Operation, " on ", right.Name), func(t *testing.T) {
					t.Parallel()
					if err := worksWith(t, test.mode, slices.Concat(test.others, test.rights[:i], test.rights[i+1:])); err == nil {
						t.Error("works as well without it")
					}
				})
			}
		})
	}
}

// documentedRights reads the table: what is always needed, what more unless the mode is Off, what more with Create.
func documentedRights(t *testing.T) (always, verify, create []kfake.ACL) {
	t.Helper()
	_, table, ok := strings.Cut(read(t, "../docs/operations.md"), "\n## Permissions\n")
	table, _, _ = strings.Cut(table, "\n## ")
	name := regexp.MustCompile("^ (group|topic) `([^`]+)`")
	right := regexp.MustCompile("`([A-Z_]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		of := name.FindStringSubmatch(cells[1])
		if of == nil {
			continue
		}
		resource := kmsg.ACLResourceTypeTopic
		if of[1] == "group" {
			resource = kmsg.ACLResourceTypeGroup
		}
		for i, into := range []*[]kfake.ACL{&always, &verify, &create} {
			for _, m := range right.FindAllStringSubmatch(cells[2+i], -1) {
				operation, err := kmsg.ParseACLOperation(m[1])
				if err != nil {
					t.Fatal(err)
				}
				*into = append(*into, kfake.ACL{
					Resource: resource, Name: of[2], Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true,
				})
			}
		}
	}
	if !ok || len(always) == 0 || len(verify) == 0 || len(create) == 0 {
		t.Fatalf("docs/operations.md has no table of rights: %v %v %v", always, verify, create)
	}
	return always, verify, create
}

// worksWith runs a consumer with these rights: through the retry topic and the dead-letter topic, and once more after the
// source has grown.
func worksWith(t *testing.T, mode retrytopics.Mode, rights []kfake.ACL) (err error) {
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, problem := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.EnableSASL(), kfake.EnableACLs(),
			kfake.Superuser("PLAIN", "admin", "secret"), kfake.User("PLAIN", "billing", "secret", rights...))
		if problem != nil {
			t.Fatal(problem)
		}
		defer cluster.Close()
		as := func(user string) []kgo.Opt {
			return []kgo.Opt{
				kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(vn.DialContext), kgo.MetadataMinAge(50 * time.Millisecond),
				kgo.SASL(plain.Auth{User: user, Pass: "secret"}.AsMechanism()),
			}
		}
		cl, problem := kgo.NewClient(append(as("admin"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if problem != nil {
			t.Fatal(problem)
		}
		defer cl.Close()
		s := &service{t: t, admin: kadm.NewClient(cl), client: cl, kafka: as("billing"), mode: mode}
		err = s.run()
	})
	return err
}

// service is a consumer whose rights are limited, and somebody whose rights are not.
type service struct {
	t      *testing.T
	admin  *kadm.Client
	client *kgo.Client
	kafka  []kgo.Opt
	mode   retrytopics.Mode
}

func (s *service) run() error {
	s.create("orders", 1)
	if s.mode != retrytopics.Create {
		for _, topic := range []string{"orders.retry.5s", "orders.dlq", "orders.dlq.ledger"} {
			s.create(topic, 1)
		}
	}
	if err := s.consume(0); err != nil || s.mode != retrytopics.Create {
		return err
	}
	if _, err := s.admin.UpdatePartitions(s.t.Context(), 2, "orders"); err != nil {
		s.t.Fatal(err)
	}
	s.client.ForceMetadataRefresh()
	time.Sleep(time.Second)
	return s.consume(1)
}

// consume runs a consumer until a record of the partition was retried and handled, another one dead-lettered, and both
// committed; or until it ends, or a minute is over.
func (s *service) consume(partition int32) error {
	for _, value := range []string{"later", "never"} {
		if err := s.client.ProduceSync(s.t.Context(), &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(value)}).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
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
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for range 60 {
		select {
		case err := <-ended:
			cancel()
			return fmt.Errorf("the consumer ended: %w", err)
		case <-time.After(time.Second):
		}
		if s.committed("orders", partition) == 2 && s.committed("orders.retry.5s", partition) == 1 {
			cancel()
			return <-ended
		}
	}
	cancel()
	return errors.Join(<-ended, fmt.Errorf("the group stands at %d on the source and at %d on the retry topic",
		s.committed("orders", partition), s.committed("orders.retry.5s", partition)))
}

func (s *service) create(topic string, partitions int32) {
	if _, err := s.admin.CreateTopic(s.t.Context(), partitions, -1, nil, topic); err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) committed(topic string, partition int32) int64 {
	offsets, err := s.admin.FetchOffsets(s.t.Context(), "billing")
	if err != nil {
		return -1
	}
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}
