package consumer_test

import (
	"testing"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/suite"
)

func TestOnTheEmbeddedBrokerInVirtualTime(t *testing.T) {
	t.Parallel()
	suite.Run(t, consumertest.Virtual)
}
