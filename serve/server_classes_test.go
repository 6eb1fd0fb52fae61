package serve_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
)

// A class whose letters are gone is not new when it comes back, for another server neither: the
// ledger remembers it.
func TestServer_AClassIsNewOnce(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	c := newCluster(t, "orders")
	cfg := serve.Config{Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{NewClass: 4 * time.Second}}}}
	s, stop := c.run(cfg)
	c.fail("orders", "decode", 1)
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 1`)
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	c.prune("orders")
	stop()
	s, _ = c.run(cfg)
	c.fail("orders", "decode", 1)
	c.fail("orders", "timeout", 1)
	shows(t, s, `siding_dead_letters_open{error_type="timeout",messaging_destination_name="orders.dlq"} 1`)
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 1`)
	first := series(t, s, "siding_dead_letters_first_written_seconds")
	if first["decode"] >= first["timeout"] {
		t.Errorf("the first letters are of %v", first)
	}
}
