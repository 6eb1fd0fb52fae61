package redrive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

func TestPoller_NothingIsSentBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		letters(t, k, 300, func(context.Context, *kgo.Record) error {
			<-release
			return classify.Retryable(classify.As(errors.New("no"), "tax"))
		})
		r, p := planned(t, k)
		before := stopped(t, r, p, redrive.Pace{Canary: -1, Rate: 50, Ramp: -1, MaxLag: -1}, 100)
		close(release)
		time.Sleep(10 * time.Second)
		slow := time.Now().Add(2 * time.Second)
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			time.Sleep(5 * time.Millisecond) // a client asks again at once
			return nil, nil, false
		})
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.retry.30s", Count: -1, When: func(req kmsg.Request) bool {
			// the watch's
			return req.(*kmsg.FetchRequest).IsolationLevel == 0 && time.Now().Before(slow)
		}})
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil))
		abortedAgain(t, o, err, "")
		if o.Counts.Sent != before.Counts.Sent {
			t.Errorf("%d were sent before it was resumed, and then %d", before.Counts.Sent, o.Counts.Sent)
		}
	})
}
