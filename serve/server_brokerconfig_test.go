package serve_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// A ledger that deletes entries before their letters makes letters open that came home. No rule
// redrives then, the topic and a plan say why, and the rule goes on when the ledger is mended.
func TestServer_NoRuleActsWhileTheLedgerForgets(t *testing.T) {
	for what, config := range map[string][2]string{
		"by age":  {"retention.ms", "3600000"},
		"by size": {"retention.bytes", "1000"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 5)
				is.broken.Store(false)
				set := func(name, value string) {
					done, err := kadm.NewClient(is.writer()).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, "orders.dlq.ledger")
					if err != nil || done[0].Err != nil {
						t.Fatal(done, err)
					}
				}
				set("cleanup.policy", "compact,delete")
				set(config[0], config[1])
				is.serve(serve.Config{RulesFile: rules(t, hourly)})
				const says = "the ledger orders.dlq.ledger forgets what became of letters: it keeps "
				is.within(time.Minute, "the topic says it", func() bool {
					var topic api.Topic
					return is.ask(http.MethodGet, "/topics/orders.dlq", "", &topic) == http.StatusOK && strings.Contains(topic.Problem, says)
				})
				time.Sleep(20 * time.Minute) // the rule would act after ten
				if n := is.done.Load(); n != 0 {
					t.Fatalf("a rule sent %d letters", n)
				}
				if n := is.log.count("a ledger forgets"); n != 1 {
					t.Errorf("the log says it %d times", n)
				}
				var plan api.Plan
				if code := is.ask(http.MethodPost, "/topics/orders.dlq/plan", "{}", &plan); code != http.StatusOK || !strings.Contains(strings.Join(plan.Warnings, "\n"), says) {
					t.Errorf("plan: %d, %q", code, plan.Warnings)
				}
				set("cleanup.policy", "compact")
				is.within(3*time.Hour, "all come home", func() bool { return is.done.Load() == 5 })
			})
		})
	}
}
