package serve_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// towns makes a station with dead-letter topics of these sources, and their ledgers.
func towns(t *testing.T, k *consumertest.Kafka, sources ...string) *station {
	t.Helper()
	for _, s := range sources {
		k.CreateTopic(s, 1)
		k.CreateTopic(s+".dlq", 1)
		k.CreateTopic(s+".dlq.ledger", 1)
	}
	return &station{t: t, k: k}
}

// lettersOf writes n letters to the dead-letter topic of a source.
func (is *station) lettersOf(source string, n int) {
	is.t.Helper()
	cl := is.writer()
	for i := range n {
		now := time.Now()
		r := &kgo.Record{Topic: source, Offset: now.UnixNano() + int64(i), Value: []byte("v")}
		bury(is.t, cl, r, headers.Meta{
			Original: headers.Position{Topic: source, Offset: r.Offset}, Group: "billing", Attempts: 1, Class: "http.503", Message: "service unavailable",
			Reason: headers.ReasonTerminal, FirstFailedAt: now, FailedAt: now,
		})
	}
}

func (is *station) writer() *kgo.Client {
	is.t.Helper()
	cl, err := kgo.NewClient(append(is.k.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		is.t.Fatal(err)
	}
	is.t.Cleanup(cl.Close)
	return cl
}

// incidents returns how often the server notified of an alert about a topic.
func (is *station) incidents(topic, alert string) int {
	return is.log.count("an incident of a dead-letter topic\" topic=" + topic + " alert=" + alert + " ")
}

func (is *station) ready() int {
	w := httptest.NewRecorder()
	is.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code
}

// One of two brokers cannot be reached. The topics of the other one are read and alerted as before,
// also by a server that begins meanwhile.
func TestServer_OneUnreachableBrokerHidesNoOtherTopic(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders", "bills")
		node, _, err := k.Cluster.AddNode(-1, 9093)
		if err != nil {
			t.Fatal(err)
		}
		for topic, node := range map[string]int32{"orders.dlq": 0, "orders.dlq.ledger": 0, "bills.dlq": node, "bills.dlq.ledger": node} {
			if err := k.Cluster.MoveTopicPartition(topic, 0, node); err != nil {
				t.Fatal(err)
			}
		}
		var cut atomic.Bool
		k.Cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			leads := r.Key() == int16(kmsg.Fetch) || r.Key() == int16(kmsg.ListOffsets)
			if cut.Load() && leads && k.Cluster.CurrentNode() == node {
				return nil, errors.New("unreachable"), true
			}
			return nil, nil, false
		})
		stop := is.serve(serve.Config{})
		is.within(time.Minute, "ready", func() bool { return is.ready() == http.StatusOK })
		cut.Store(true)
		time.Sleep(2 * time.Minute)
		is.lettersOf("orders", 12)
		is.within(5*time.Minute, "notified of orders.dlq", func() bool { return is.incidents("orders.dlq", "open") == 1 })
		stop()
		is.serve(serve.Config{})
		is.within(5*time.Minute, "the next server knows orders.dlq", func() bool {
			var topic api.Topic
			return is.ask(http.MethodGet, "/topics/orders.dlq", "", &topic) == http.StatusOK && topic.Known != nil && topic.Open == 12
		})
		if code := is.ready(); code != http.StatusOK {
			t.Errorf("/readyz answers %d", code)
		}
	})
}

// The ledger of one topic has a record that this version cannot read. The server is ready, notifies
// of incidents of both topics, and says so of the one. No rule acts on it.
func TestServer_RecordsThatNobodyCanReadHideNoLetters(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]*kgo.Record{
		"a broken run":  ledgerrecord.Run("bills.dlq.ledger", "20260101-000000-abcdef", []byte("garbage")),
		"a newer run":   ledgerrecord.Run("bills.dlq.ledger", "20260101-000000-abcdef", []byte(`{"v":99}`)),
		"a newer entry": {Topic: "bills.dlq.ledger", Key: []byte("0"), Value: []byte(`{"v":99}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := towns(t, k, "orders", "bills")
				is.lettersOf("orders", 12)
				is.lettersOf("bills", 12)
				if err := is.writer().ProduceSync(t.Context(), record).FirstErr(); err != nil {
					t.Fatal(err)
				}
				is.serve(serve.Config{RulesFile: rules(t, hourly)})
				is.within(time.Minute, "notified of both", func() bool {
					return is.incidents("orders.dlq", "open") == 1 && is.incidents("bills.dlq", "open") == 1
				})
				if code := is.ready(); code != http.StatusOK {
					t.Errorf("/readyz answers %d", code)
				}
				if bills := ask[api.Topic](is, "/topics/bills.dlq"); !strings.Contains(bills.Problem, "ledger") || bills.Open < 11 {
					t.Errorf("bills.dlq is %+v", bills)
				}
				if orders := ask[api.Topic](is, "/topics/orders.dlq"); orders.Problem != "" {
					t.Errorf("orders.dlq has the problem %q", orders.Problem)
				}
				time.Sleep(20 * time.Minute) // the rule would act after ten
				for _, on := range ask[[]api.Rule](is, "/rules")[0].On {
					if on.Topic == "bills.dlq" && (on.Would != "nothing" || on.Why == "") {
						t.Errorf("on bills.dlq the rule would do %q: %q", on.Would, on.Why)
					}
				}
				for _, run := range ask[[]api.Run](is, "/runs") {
					if run.Topic == "bills.dlq" {
						t.Errorf("there is the run %+v", run)
					}
				}
				if n := is.log.count("is not read; the server tries again\" topic=bills.dlq"); n != 1 {
					t.Errorf("the log says %d times that bills.dlq has what is not read", n)
				}
				is.lettersOf("bills", 1)
				is.within(15*time.Second, "the next letter is known", func() bool { return ask[api.Topic](is, "/topics/bills.dlq").Open > 11 })
			})
		})
	}
}
