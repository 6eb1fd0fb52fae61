package redrive_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// deleteBefore deletes the records before an offset, as retention does.
func deleteBefore(t *testing.T, k *consumertest.Kafka, topic string, at int64) {
	t.Helper()
	adm := kadm.NewClient(clientOf(t, k))
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, at, -1)
	if deleted, err := adm.DeleteRecords(t.Context(), offsets); err != nil || deleted[topic][0].Err != nil {
		t.Errorf("delete records: %v, %+v", err, deleted)
	}
}

// If the start of a partition was not known, the run assumed that it still had the letter, which
// then counted as succeeded.
func TestOutcomes_WaitWhereAPartitionsStartIsUnknown(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		h := takeOver(t, k, letters(t, k, 1, nil))
		r, p := planned(t, k)
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(5 * time.Second)
			deleteBefore(t, k, "orders.retry.5s", 1)
			blind := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders.retry.5s", Err: kerr.LeaderNotAvailable, Count: -1, When: func(req kmsg.Request) bool {
				return listing(req, -2, "orders.retry.5s")
			}})
			h.commit("orders.retry.5s", 2) // the consumer goes on behind what is gone
			time.Sleep(time.Minute)
			blind.Remove()
		}()
		o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1}, nil)
		<-done
		ends(t, redrive.Counts{Unknown: 1})(o, err)
	})
}
