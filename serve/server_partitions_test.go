package serve_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// ofThree returns a station whose dead-letter topic and ledger have three partitions.
func ofThree(t *testing.T, k *consumertest.Kafka) *station {
	t.Helper()
	for _, topic := range []string{"orders", "orders.dlq", "orders.dlq.ledger"} {
		k.CreateTopic(topic, 3)
	}
	return &station{t: t, k: k}
}

// unled takes the leader of a partition away.
func (is *station) unled(topic string, partition int32) *kfake.FaultHandle {
	return is.k.Cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.ListOffsets, kmsg.Fetch, kmsg.Produce}, Topic: topic, Partitions: []int32{partition}, Err: kerr.LeaderNotAvailable, Count: -1,
	})
}

// lettersIn writes letters to a partition of orders.dlq.
func (is *station) lettersIn(partition int32, n int) {
	is.t.Helper()
	cl := is.writer()
	for range n {
		r := &kgo.Record{Topic: "orders.dlq", Partition: partition, Headers: []kgo.RecordHeader{{Key: headers.FailureReason, Value: []byte(headers.ReasonTerminal)}}}
		if err := cl.ProduceSync(is.t.Context(), r).FirstErr(); err != nil {
			is.t.Fatal(err)
		}
	}
}

const openIncident = `alert=open severity=page`

// A partition of a topic, or of its ledger, has no leader. The letters of the others are counted,
// and people are notified of them, by a server that begins meanwhile, too. The topic names the
// problem, which the log has once.
func TestServer_CountsLettersBesideASilentPartition(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, test := range []struct {
		topic     string
		partition int32
		restart   bool
	}{
		{"orders.dlq", 2, false},
		{"orders.dlq", 2, true},
		{"orders.dlq.ledger", 2, false},
		{"orders.dlq.ledger", 2, true},
		{"orders.dlq.ledger", 0, true}, // it has what the server before noted
	} {
		consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
			is := ofThree(t, k)
			cfg := serve.Config{Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{WarnOpen: 1, PageOpen: 5}}}}
			stop := is.serve(cfg)
			time.Sleep(2 * time.Minute)
			silent := is.unled(test.topic, test.partition)
			if test.restart {
				stop()
				is.serve(cfg)
			}
			is.lettersIn(1, 20)
			is.within(10*time.Minute, "people were notified of 20 letters", func() bool { return is.log.count(openIncident) > 0 })
			topic := ask[api.Topic](is, "/topics/orders.dlq")
			if topic.Open != 20 || !strings.Contains(topic.Problem, "partition") || (topic.Known == nil) != test.restart {
				t.Errorf("%+v: %+v", test, topic)
			}
			if n := strings.Count(get(t, is.Server, "/metrics"), `siding_dead_letters_open{error_type="",messaging_destination_name="orders.dlq"} 20`); n != 1 {
				t.Errorf("%+v: the metrics do not count the letters:\n%s", test, get(t, is.Server, "/metrics"))
			}
			time.Sleep(20 * time.Minute)
			if n := is.log.count("is not read; the server tries again"); n != 1 {
				t.Errorf("%+v: the log has the problem %d times, want once", test, n)
			}
			silent.Remove()
			is.lettersIn(2, 1)
			is.within(10*time.Minute, "all letters are known", func() bool {
				topic := ask[api.Topic](is, "/topics/orders.dlq")
				return topic.Open == 21 && topic.Problem == "" && topic.Known != nil
			})
			if n := is.log.count(openIncident); n != 1 {
				t.Errorf("%+v: people were notified %d times, want once", test, n)
			}
		})
	}
}

// What a partition without a leader has might be a reason to alert: no incident is over meanwhile.
// As many letters as it had come to another one: they are read nevertheless.
func TestServer_EndsNoIncidentWhileAPartitionIsSilent(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := ofThree(t, k)
		is.serve(serve.Config{Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{New: 3, Oldest: -1, NewClass: -1, Retention: -1}}}})
		is.lettersIn(2, 5)
		is.within(5*time.Minute, "people were notified of new letters", func() bool { return is.log.count("alert=new ") == 1 })
		time.Sleep(time.Minute) // what the server noted is read
		silent := is.unled("orders.dlq", 2)
		is.lettersIn(1, 5)
		is.within(10*time.Minute, "the letters are counted", func() bool { return ask[api.Topic](is, "/topics/orders.dlq").Open == 10 })
		time.Sleep(20 * time.Minute)
		if n := is.log.count("over=true"); n > 0 {
			t.Errorf("an incident was over, though it was unknown whether letters came")
		}
		silent.Remove()
		is.within(10*time.Minute, "the incident is over", func() bool { return is.log.count("over=true") == 1 })
	})
}

// A rule does nothing while a partition of the topic, or of its ledger, has no leader: letters that
// it would send might have been sent. Nor does a person.
func TestServer_RedrivesNothingBesideASilentPartition(t *testing.T) {
	t.Parallel()
	for name, test := range cases.Cross(
		map[string]string{"letters": "orders.dlq", "ledger": "orders.dlq.ledger"},
		map[string]bool{"known before": false, "unknown": true},
	) {
		topic, restart := test.A, test.B
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := ofThree(t, k)
				k.Run(consumer.Config{
					Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}},
					Handler: func(context.Context, *kgo.Record) error { return nil },
				})
				cfg := serve.Config{RulesFile: rules(t, soon)}
				stop := is.serve(cfg)
				time.Sleep(2 * time.Minute)
				silent := is.unled(topic, 1)
				if restart {
					stop()
					is.serve(cfg)
				}
				is.letter(time.Now())
				is.within(10*time.Minute, "the letter is counted", func() bool { return ask[api.Topic](is, "/topics/orders.dlq").Open == 1 })
				// The rule would act after two minutes, and rests for ten at most.
				time.Sleep(20 * time.Minute)
				for path, body := range map[string]string{"runs": `{"why":"test"}`, "letters/0/0/discard": `{"why":"test"}`} {
					if code := is.ask("POST", "/topics/orders.dlq/"+path, body, nil); code < 500 {
						t.Errorf("%s, restart %v: %s: %d", topic, restart, path, code)
					}
				}
				if runs := ask[api.Topic](is, "/topics/orders.dlq"); runs.Run != "" || runs.Open != 1 {
					t.Errorf("%s, restart %v: %+v", topic, restart, runs)
				}
				silent.Remove()
				is.within(time.Hour, "the rule redrives the letter", func() bool { return ask[api.Topic](is, "/topics/orders.dlq").Open == 0 })
			})
		})
	}
}
