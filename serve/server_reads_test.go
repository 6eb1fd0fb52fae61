package serve_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
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

// A ledger is read once. After that each change of it costs what is new, however large it is: a run
// changes it every five seconds.
func TestServer_ReadsNoLedgerFromItsStartAgain(t *testing.T) {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 1)
		cl := is.writer()
		ledger, err := kadm.NewClient(cl).ListTopics(t.Context(), "orders.dlq.ledger")
		if err != nil {
			t.Fatal(err)
		}
		var fromStart, fetched atomic.Int64
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			for _, of := range r.(*kmsg.FetchRequest).Topics {
				if kadm.TopicID(of.TopicID) != ledger["orders.dlq.ledger"].ID {
					continue
				}
				for _, p := range of.Partitions {
					if fetched.Add(1); p.FetchOffset == 0 {
						fromStart.Add(1)
					}
				}
			}
			return nil, nil, false
		})
		note := func() {
			if err := cl.ProduceSync(t.Context(), dlq.RunRecord("orders.dlq.ledger", "serve/of-a-test", []byte("{}"))).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		note()
		is.serve(serve.Config{})
		is.within(time.Minute, "the topic is listed", func() bool { return is.ask(http.MethodGet, "/topics/orders.dlq", "", nil) == http.StatusOK })
		is.within(time.Minute, "the letter is known", func() bool { return ask[api.Topic](is, "/topics/orders.dlq").Open == 1 })
		time.Sleep(time.Minute) // the incident is noted
		if fromStart.Load() == 0 {
			t.Fatal("the server has not read the ledger")
		}
		fromStart.Store(0)
		fetched.Store(0)
		for range 10 {
			note()
			time.Sleep(15 * time.Second)
		}
		if n := fetched.Load(); n < 5 {
			t.Fatalf("the ledger was read %d times", n)
		}
		if n := fromStart.Load(); n != 0 {
			t.Errorf("the ledger was read %d times from its start", n)
		}
	})
}
