package txn_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// behind is a hook that has a second record produced behind the first one.
type behind func()

func (b behind) OnProduceRecordBuffered(r *kgo.Record) {
	if string(r.Value) == "first" {
		time.AfterFunc(time.Second, b)
	}
}

// A client sends a topic's first record before it stores the topic's partitions. If the answer came
// sooner, the commit was an abort, without an error.
func TestWrite_CommitsBeforeTheClientStoredTheTopic(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("ledger", 1)
		// A load that failed before is stored, and has no partitions.
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "ledger", Err: kerr.LeaderNotAvailable, Count: 1})
		k.Cluster.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			time.Sleep(2 * time.Second)
			return nil, nil, false
		})
		var cl *kgo.Client
		cl, err := kgo.NewClient(append(k.Opts(),
			kgo.TransactionalID("siding"), kgo.ProducerLinger(0),
			kgo.WithHooks(behind(func() {
				cl.Produce(t.Context(), &kgo.Record{Topic: "ledger", Value: []byte("second")}, nil)
			})),
			// The partitions are stored when both records have one.
			kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
				return func(r *kgo.Record, _ int) int {
					if string(r.Value) == "first" {
						return 0
					}
					time.Sleep(time.Second)
					return -1 // it fails, and nothing of it is sent
				}
			})),
		)...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		w := txn.Writers{Clients: [2]*kgo.Client{cl}}
		if err := w.Write(t.Context(), 0, &kgo.Record{Topic: "ledger", Value: []byte("first")}); err != nil {
			t.Fatal(err)
		}
		reader, err := kgo.NewClient(append(k.Opts(), kgo.ConsumeTopics("ledger"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if n := reader.PollFetches(ctx).NumRecords(); n != 1 {
			t.Errorf("%d records are committed, want 1", n)
		}
	})
}
