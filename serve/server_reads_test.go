package serve_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// A dead-letter topic is deleted, created and filled with as many letters between two looks: its
// offsets are those that the server knows. Its letters are others all the same.
func TestServer_OneThatWasRecreatedIsReadAnew(t *testing.T) {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 5)
		is.serve(serve.Config{})
		open := func() int64 { return ask[api.Topic](is, "/topics/orders.dlq").Open }
		is.within(time.Minute, "the topic is listed", func() bool { return is.ask(http.MethodGet, "/topics/orders.dlq", "", nil) == http.StatusOK })
		is.within(time.Minute, "five letters are open", func() bool { return open() == 5 })
		if code := is.ask(http.MethodPost, "/topics/orders.dlq/discard", `{"why":"x","expect":5}`, nil); code != http.StatusOK {
			t.Fatalf("discard: %d", code)
		}
		is.within(time.Minute, "none is open", func() bool { return open() == 0 })
		time.Sleep(time.Minute + time.Second) // the next look is in some seconds
		k.DeleteTopic("orders.dlq")
		k.CreateTopic("orders.dlq", 1)
		for range 5 {
			is.letterOf("another.class", time.Now())
		}
		is.within(2*time.Minute, "the five new ones are open", func() bool { return open() == 5 })
	})
}
