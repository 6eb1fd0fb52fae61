package serve_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// commits commits for a group without members what its guard of a topic's partition is.
func commits(t *testing.T, cl *kgo.Client, group, topic string, is commitmark.Guard) {
	t.Helper()
	commitsAt(t, cl, group, topic, 0, is)
}

func commitsAt(t *testing.T, cl *kgo.Client, group, topic string, offset int64, is commitmark.Guard) {
	t.Helper()
	at := kadm.Offsets{}
	at.Add(kadm.Offset{Topic: topic, At: offset, LeaderEpoch: -1, Metadata: commitmark.Mark + " 1" + is.Field()})
	if err := kadm.NewClient(cl).CommitAllOffsets(t.Context(), group, at); err != nil {
		t.Fatal(err)
	}
}

// Letters stop, since a group holds their source. The API and the pages say so, and nothing looks
// calm; the incident of these letters is not over, and no rule redrives them. A group that has no
// letters there hinders neither. When the guard is closed, both go on.
func TestServer_SaysWhatAGuardHolds(t *testing.T) {
	t.Parallel()
	p := newPager(t)
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders", "bills")
		cl := is.writer()
		cfg := p.config()
		cfg.Topics[0].Alerts = serve.Thresholds{WarnOpen: -1, PageOpen: -1, New: 5, Oldest: -1, NewClass: -1, Retention: -1, Held: -1, Gone: -1}
		cfg.RulesFile, cfg.Redact = rules(t, hourly), serve.Redact{Patterns: []string{"hunter[0-9]+"}}
		is.serve(cfg)
		is.lettersOf("orders", 6) // of billing
		is.lettersOf("bills", 6)
		since := time.Now().Truncate(time.Second)
		commits(t, cl, "billing", "orders", commitmark.Guard{State: commitmark.Held, Since: since, Class: "\x1b[2J<b>hunter42"})
		commits(t, cl, "mail", "bills", commitmark.Guard{State: commitmark.Strained, Since: since.Add(1000 * time.Hour)})
		k.Produce(&kgo.Record{Topic: "orders"}, &kgo.Record{Topic: "orders"})
		is.within(time.Minute, "both incidents begin", func() bool { return p.open() == 2 })
		is.within(10*time.Minute, "that of the topic whose letters' group is well is over", func() bool { return len(p.received("[over] ")) > 0 })
		time.Sleep(time.Until(since.Add(12 * time.Minute))) // beyond the cool-down
		if over := p.received("[over] "); p.open() != 1 || len(over) != 1 || !strings.Contains(over[0], "bills.dlq") {
			t.Errorf("%d incidents go on, and received is %q", p.open(), over)
		}

		topic := ask[api.Topic](is, "/topics/orders.dlq")
		if len(topic.Guards) != 1 || topic.Guards[0].Waiting == nil || *topic.Guards[0].Waiting != 2 {
			t.Fatalf("the guards are %+v", topic.Guards)
		}
		topic.Guards[0].Waiting = nil
		if want := (api.Guard{Group: "billing", State: "held", Since: since.UTC(), Class: "\x1b[2J<b>[redacted]", Partitions: 1, Of: 1}); topic.Guards[0] != want {
			t.Errorf("the guard is %+v, want %+v", topic.Guards[0], want)
		}
		if other := ask[api.Topic](is, "/topics/bills.dlq"); len(other.Guards) != 1 || other.Guards[0].State != "strained" || !other.Guards[0].Since.After(time.Now()) {
			t.Errorf("the guards of the other topic are %+v", other.Guards)
		}
		const said = "held since 12 min ago by billing (1 of 1 partition), 2 records wait, most failures are "
		words(t, is.Server, "/", said, "strained by mail (1 of 1 partition), 0 records wait", "records held or strained in 2 topics")
		words(t, is.Server, "/topics/orders.dlq", said)
		for _, path := range []string{"/", "/topics/orders.dlq"} {
			if _, page := visit(t, is.Server, httptest.NewRequest(http.MethodGet, path, nil)); strings.Contains(page, "quiet for") || strings.Contains(page, "none growing") || strings.Contains(page, "hunter") {
				t.Errorf("%s: %s", path, page)
			}
		}

		on := func(topic string) api.RuleOnTopic {
			return ask[api.RuleOnTopic](is, "/rules/outage/topics/"+topic+"/dry-run")
		}
		if got := on("orders.dlq"); got.Would != "nothing" || got.Letters != 6 || got.Why != "group billing holds records of orders back" {
			t.Errorf("the rule: %+v", got)
		}
		if got := on("bills.dlq"); got.Would != "redrive" {
			t.Errorf("the rule on the other topic: %+v", got)
		}
		if events := ask[[]api.RuleEvent](is, "/rules/outage/history"); len(events) > 0 {
			t.Errorf("the rule decided %+v", events)
		}
		// Nothing waits for the group, which has no members.
		commitsAt(t, cl, "billing", "orders", 2, commitmark.Guard{})
		is.within(2*time.Minute, "the incident is over, and the rule would redrive", func() bool { return p.open() == 0 && on("orders.dlq").Would == "redrive" })
		words(t, is.Server, "/topics/orders.dlq", "quiet for 1")
	})
}
