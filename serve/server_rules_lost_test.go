package serve_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// old brokers have no ids of topics, so a topic that is recreated looks like one whose log lost its
// records.
var old = kgo.MaxVersions(kversion.V2_7_0())

// The ledger lost its end, as after an unclean election, and its letters were open again. The rule
// redrove what had come home: only a ledger that was recreated made it wait.
func TestRules_ALedgerThatLostItsEndMakesThemWait(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		cfg := serve.Config{RulesFile: rules(t, soon)}
		stop := is.serve(cfg, old)
		is.within(10*time.Minute, "all letters came home", func() bool { return is.done.Load() == 3 })
		is.within(10*time.Minute, "the run is done", func() bool {
			now := is.known()
			return now.Open == 0 && now.Pending == 0 && now.Run == ""
		})
		k.DeleteTopic("orders.dlq.ledger")
		is.createLedger()
		time.Sleep(20 * time.Minute) // the rule would act after two
		if n := is.done.Load(); n != 3 {
			t.Errorf("%d records were handled, want 3", n)
		}
		if on := ask[[]api.Rule](is, "/rules")[0].On[0]; on.Paused == nil {
			t.Errorf("the rule is %+v", on)
		}
		stop()
		is.serve(cfg, old)
		time.Sleep(20 * time.Minute)
		if n := is.done.Load(); n != 3 {
			t.Errorf("after a restart %d records were handled, want 3", n)
		}
	})
}
