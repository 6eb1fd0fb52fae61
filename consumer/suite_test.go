package consumer_test

import (
	"testing"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/suite"
)

// The suite runs on the embedded broker, in virtual time.
func TestConsumer_SuiteOnTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	suite.Run(t, consumertest.Virtual)
}
