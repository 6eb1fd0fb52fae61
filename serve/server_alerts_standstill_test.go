package serve_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/serve"
)

// Records of a topic stand still, and no letter comes that could tell of it: its group holds it,
// may not write letters, or has no members. People are notified once, not before the threshold, and
// of the end once. A server that starts meanwhile does not know since when a group is gone, and
// takes the incident for as long as before. A threshold that is switched off notifies nobody.
func TestServer_NotifiesOfGroupsThatStandStill(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begin func(t *testing.T, is *station, k *consumertest.Kafka) (end func())
		after time.Duration // the threshold
		off   serve.Thresholds
		text  string
	}{
		"held": {func(t *testing.T, is *station, _ *consumertest.Kafka) func() {
			cl := is.writer()
			commits(t, cl, "billing", "orders", commitmark.Guard{State: commitmark.Held, Since: time.Now(), Class: "http.503 hunter42"})
			return func() { commits(t, cl, "billing", "orders", commitmark.Guard{}) }
		}, time.Minute, serve.Thresholds{Held: -1}, "group billing holds records back, most failures are http.503 [redacted]"},
		"blocked": {func(_ *testing.T, _ *station, k *consumertest.Kafka) func() {
			fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.TopicAuthorizationFailed})
			k.Run(consumer.Config{
				Topics: []string{"orders"}, Group: "billing",
				Handler: func(context.Context, *kgo.Record) error { return classify.Terminal(errors.New("no such SKU")) },
			})
			k.Produce(&kgo.Record{Topic: "orders"})
			return fault.Remove
		}, 2 * time.Minute, serve.Thresholds{Blocked: -1}, "records do not run in group billing: blocked: it lacks the permission to write to a topic (1 partition)"},
		"gone": {func(t *testing.T, is *station, k *consumertest.Kafka) func() {
			cl := is.writer()
			commits(t, cl, "billing", "orders", commitmark.Guard{})
			k.Produce(&kgo.Record{Topic: "orders"})
			return func() { commitsAt(t, cl, "billing", "orders", 1, commitmark.Guard{}) }
		}, 5 * time.Minute, serve.Thresholds{Gone: -1}, "group billing has no members, and records wait for it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, off := newPager(t), newPager(t)
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := towns(t, k, "orders")
				cfg, silent := p.config(), off.config()
				cfg.Redact = serve.Redact{Patterns: []string{"hunter[0-9]+"}}
				test.off.NewClass = -1 // a letter comes at the end
				silent.Group, silent.Topics[0].Alerts = "other", test.off
				is.serve(silent)
				stop := is.serve(cfg)
				time.Sleep(time.Minute)
				began, end := time.Now(), test.begin(t, is, k)
				is.within(test.after+90*time.Second, "people are notified", func() bool { return p.open() == 1 })
				if early := test.after - time.Since(began); early > 15*time.Second {
					t.Errorf("they are notified %v early", early)
				}
				stop()
				is.serve(cfg)
				time.Sleep(15 * time.Minute)
				end()
				is.within(3*time.Minute, "it is over", func() bool { return p.open() == 0 })
				time.Sleep(10 * time.Minute)
				got := p.received("")
				if len(got) != 2 || !strings.HasSuffix(got[0], "[page] orders.dlq: "+test.text) || !strings.HasSuffix(got[1], "[over] orders.dlq: "+test.text) {
					t.Errorf("received %q", got)
				}
				if got := off.received(""); len(got) > 0 {
					t.Errorf("switched off: received %q", got)
				}
			})
		})
	}
}
