package serve_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// known returns what the server knows of orders.dlq, when it has read it.
func (is *station) known() (got api.Topic) {
	is.t.Helper()
	is.within(time.Minute, "orders.dlq was read", func() bool {
		return is.ask(http.MethodGet, "/topics/orders.dlq", "", &got) == http.StatusOK && got.Known != nil
	})
	return got
}

// comeHome waits until so many letters came home, and their run is done.
func (is *station) comeHome(n int64) {
	is.t.Helper()
	is.within(10*time.Minute, "all letters came home", func() bool { return is.done.Load() == n })
	is.within(10*time.Minute, "the run is done", func() bool {
		now := is.known()
		return now.Open == 0 && now.Pending == 0 && now.Run == ""
	})
}

// old brokers have no ids of topics, so a topic that is recreated looks like one whose log lost its
// records.
var old = kgo.MaxVersions(kversion.V2_7_0())

func (is *station) createLedger() {
	is.t.Helper()
	compact := "compact"
	admin := kadm.NewClient(is.writer())
	if _, err := admin.CreateTopic(is.t.Context(), 1, 1, map[string]*string{"cleanup.policy": &compact}, "orders.dlq.ledger"); err != nil {
		is.t.Fatal(err)
	}
}

// A rule brought letters home. Their ledger is deleted and recreated, and does not know that. The
// rule sends them no second time, also at a server that begins later, until an operator resumes it.
// Nor does it if the ledger is created while another server runs than when it was deleted, nor if
// the ledger lost its end, as after an unclean election.
func TestRules_ARecreatedLedgerMakesThemWaitForAnOperator(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, test := range map[string]struct {
		restart bool
		opts    []kgo.Opt
	}{"at once": {}, "after a restart": {restart: true}, "it lost its end": {opts: []kgo.Opt{old}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 3)
				is.broken.Store(false)
				cfg := serve.Config{RulesFile: rules(t, soon)}
				stop := is.serve(cfg, test.opts...)
				is.comeHome(3)
				k.DeleteTopic("orders.dlq.ledger")
				if test.restart {
					time.Sleep(time.Minute)
					stop()
					stop = is.serve(cfg, test.opts...)
					time.Sleep(time.Minute)
				}
				is.createLedger()
				for range 2 {
					is.within(5*time.Minute, "the letters are open again", func() bool { return is.known().Open == 3 })
					time.Sleep(time.Hour)
					if n := is.done.Load(); n != 3 {
						t.Errorf("%d records were handled, want 3", n)
					}
					on := ask[[]api.Rule](is, "/rules")[0].On[0]
					if on.Paused == nil || on.Paused.By != "rule outage" || on.Would != "nothing" {
						t.Errorf("the rule is %+v", on)
					}
					stop()
					stop = is.serve(cfg, test.opts...)
				}
				_ = is.known()
				if n := is.log.count("the ledger cannot keep yet"); n > 0 {
					t.Errorf("the rule could not be paused at the first try, and %d times in all", n)
				}
				if n := len(ask[[]api.RuleEvent](is, "/rules/outage/history")); n != 1 {
					t.Errorf("the ledger has %d decisions, want one", n)
				}
				if code := is.ask(http.MethodPost, "/rules/outage/topics/orders.dlq/resume", `{"why":"send all"}`, nil); code != http.StatusOK {
					t.Fatalf("resuming: %d", code)
				}
				is.within(10*time.Minute, "the rule goes on", func() bool { return is.done.Load() == 6 })
			})
		})
	}
}

// The pause after a recreated ledger was written only by a rule that did not rest, and only for the
// rules of that moment. So it was lost at a restart: the next server redrove what the old ledger
// had resolved.
func TestRules_ThePauseOfARecreatedLedgerOutlivesARestart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rests bool   // the rule, after a refusal
		next  string // the rules of the next server
	}{
		"while the rule rests":      {true, soon},
		"of a rule that came later": {false, strings.Replace(soon, "outage", "later", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 3)
				is.broken.Store(false)
				stop := is.serve(serve.Config{RulesFile: rules(t, soon)})
				is.comeHome(3)
				if test.rests {
					is.letterFor("gone", "http.503", time.Now())
					time.Sleep(15 * time.Minute) // then it rests for ten minutes
					refusals := is.log.count("a rule could not be applied")
					is.within(11*time.Minute, "the rule rests", func() bool { return is.log.count("a rule could not be applied") > refusals })
				}
				k.DeleteTopic("orders.dlq.ledger")
				is.createLedger()
				is.within(2*time.Minute, "the rule is paused", func() bool {
					on := ask[[]api.Rule](is, "/rules")[0].On
					return len(on) == 1 && on[0].Paused != nil
				})
				time.Sleep(time.Minute) // two rounds
				stop()
				is.serve(serve.Config{RulesFile: rules(t, test.next)})
				time.Sleep(15 * time.Minute) // the rule would act after two
				if n := is.done.Load(); n != 3 {
					t.Errorf("%d records were handled, want 3: the next server redrove what the old ledger had resolved", n)
				}
				if on := ask[[]api.Rule](is, "/rules")[0].On[0]; on.Paused == nil {
					t.Errorf("at the next server the rule is %+v", on)
				}
			})
		})
	}
}

// refused returns the answer of a broker that lets no client write.
func refused(r *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	is := r.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range r.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		is.Topics = append(is.Topics, topic)
	}
	return is
}

// The new ledger takes nothing yet. The rule waits all the same, and says why.
func TestRules_WaitThoughTheNewLedgerTakesNothing(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, soon)})
		is.comeHome(3)
		k.Cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			return refused(r.(*kmsg.ProduceRequest)), nil, true
		})
		k.DeleteTopic("orders.dlq.ledger")
		is.createLedger()
		is.within(5*time.Minute, "the letters are open again", func() bool { return is.known().Open == 3 })
		for range 10 {
			on := ask[[]api.Rule](is, "/rules")[0].On[0]
			if on.Paused == nil || !strings.Contains(on.Paused.Why, "the ledger is newer than letters of the topic") {
				t.Fatalf("the rule is %+v", on)
			}
			time.Sleep(10 * time.Minute)
		}
		if n := is.done.Load(); n != 3 {
			t.Errorf("%d records were handled, want 3", n)
		}
		if n := is.log.count("the ledger cannot keep yet"); n != 1 {
			t.Errorf("the log has %d times that the rule could not be paused, want once", n)
		}
	})
}
