package redrive_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

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
			if err := k.Cluster.DeleteRecords("orders.retry.5s", 0, 1); err != nil {
				t.Error(err)
			}
			blind := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders.retry.5s", Err: kerr.LeaderNotAvailable, Count: -1, When: func(req kmsg.Request) bool {
				return listing(req, -2, "orders.retry.5s")
			}})
			h.commit("orders.retry.5s", 2) // the consumer goes on behind what is gone
			time.Sleep(time.Minute)
			blind.Remove()
		}()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1}, nil))
		<-done
		ends(t, redrive.Counts{Unknown: 1})(o, err)
	})
}
