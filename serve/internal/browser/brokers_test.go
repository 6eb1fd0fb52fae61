package browser

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration"
)

// shared is the cluster of make browser BROKER=kafka.
var shared integration.Shared

// brokers returns options for a cluster with nothing but some topics of three partitions: an
// embedded one, or the shared one.
func brokers(t *testing.T, topics ...string) []kgo.Opt {
	t.Helper()
	if os.Getenv("SIDING_BROWSER") != "kafka" {
		embedded, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(embedded.Close)
		return []kgo.Opt{kgo.SeedBrokers(embedded.ListenAddrs()...)}
	}
	opts := []kgo.Opt{kgo.SeedBrokers(shared.Kafka(t).Brokers()...)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	adm, err := kadm.NewOptClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	if err := empty(ctx, adm); err != nil {
		t.Fatal(err)
	}
	for tick := time.Tick(50 * time.Millisecond); ; <-tick {
		made, err := adm.CreateTopics(ctx, 3, 1, nil, topics...)
		if err == nil {
			err = made.Error()
		}
		switch {
		case err == nil:
			return opts
		case !errors.Is(err, kerr.TopicAlreadyExists), ctx.Err() != nil: // else it is being deleted
			t.Fatal(err)
		}
	}
}

// empty deletes the topics and groups that the tests before left.
func empty(ctx context.Context, adm *kadm.Client) error {
	groups, err := adm.ListGroups(ctx)
	if err != nil {
		return err
	}
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		return err
	}
	if len(topics) > 0 {
		if _, err := adm.DeleteTopics(ctx, topics.Names()...); err != nil {
			return err
		}
	}
	if names := groups.Groups(); len(names) > 0 {
		_, err = adm.DeleteGroups(ctx, slices.Clone(names)...)
	}
	return err
}
