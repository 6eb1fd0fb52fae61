package serve_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// Letters that come now are new, though the clocks of those that write them are slow by more than
// the time in which letters are, or fast by hours. They are so for five minutes, and no alert stays
// longer.
func TestServer_AWrongClockHidesNoLetter(t *testing.T) {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 1)
		is.serve(serve.Config{Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{New: 50, WarnOpen: -1, PageOpen: -1}}}})
		time.Sleep(time.Minute)
		cl := is.writer()
		for i := range 60 {
			at := time.Now().Add(-6 * time.Minute)
			if i == 30 {
				at = time.Now().Add(4 * time.Hour)
			}
			letter := &kgo.Record{Topic: "orders.dlq", Timestamp: at, Headers: []kgo.RecordHeader{{Key: headers.FailureReason, Value: []byte(headers.ReasonTerminal)}}}
			if err := cl.ProduceSync(t.Context(), letter).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second)
		if n := is.log.count("61 letters came within"); n == 0 {
			t.Error("no message came of them")
		}
		if n := ask[api.Topic](is, "/topics/orders.dlq").Recent; n != 61 {
			t.Errorf("%d letters are new, want 61", n)
		}
		time.Sleep(6 * time.Minute)
		if n := is.log.count("came within 5m\" over=true"); n != 1 {
			t.Errorf("%d messages said that it is over", n)
		}
		if n := ask[api.Topic](is, "/topics/orders.dlq").Recent; n != 0 {
			t.Errorf("6 min later %d letters are new, want none", n)
		}
	})
}
