package look

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

func TestTopicFields_FitTheTerminal(t *testing.T) {
	t.Parallel()
	kept := 336 * time.Hour
	topic := topicFields(
		subject.Sibling{Topic: "payments-service.dlq", Partitions: 12}, false, nil,
		topicStats{total: 123456, recent: 123456, oldest: clitest.Noon.Add(-kept), retention: &kept},
		topicContents{123456, 123456, 123456, output.Ago(clitest.Noon), "payment.Declined", []string{"billing-service", "mail"}}, clitest.Noon, false,
	)
	clitest.Fit{Needs: []string{"TOPIC", "OPEN", "NEXT EXPIRY", "TOP CLASS"}, Always: []string{"TOPIC", "OPEN", "NEXT EXPIRY"}, Shows: "payment.Declined"}.Check(t, "topics", topic)
}
