package integration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer"
)

// A run ended without an abort although all letters after its canary failed with another class.
func TestRun_AbortsWhenAShareOfAnyClassFails(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 1)
	v := s.deploy(topic, topic, time.Second)
	const n = 400
	s.incident(topic, "order", n)
	v.deploys(func(value string, _ consumer.Delivery) error {
		if value == "order 0" { // the canary
			return nil
		}
		return bug("sku")
	})
	p := s.begin("run", topic+".dlq", "--yes", "--rate", "20", "--ramp", "0", "--window", "1s").ends(3)
	status := s.rows("status", s.rows("runs", topic+".dlq")[0].text("run"))[0]
	// On a busy machine the letters of a second fail together, and look like new traffic first.
	cause := status.text("cause")
	alarmed := strings.Contains(cause, "failed again, of any class, where 10% of ") || strings.Contains(cause, "fills faster than it is drained")
	if sent := status.number("sent"); status.text("state") != "aborted" || !alarmed || sent > n/2 {
		t.Errorf("the status is %v, want that it was aborted before half of it was sent; it prints\n%s", status, p.output())
	}
}
