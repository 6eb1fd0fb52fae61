package integration_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/suite"
)

// ofMembers are the areas of the suite whose promises a group protocol can break.
var ofMembers = []string{"order", "outage", "rebalance", "restart", "sharing", "start", "topology"}

// Siding's promises on real Kafka, the same tests as on the embedded broker. The classic protocol,
// which these have too, runs the areas of members, and the others with SIDING_LONG.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p protocol) {
		areas := suite.Areas()
		if p.groupType == "classic" && !isLong() {
			areas = ofMembers
		}
		suite.Run(t, func(t *testing.T, f func(*testing.T, *consumertest.Kafka)) {
			opts := append(shared.Kafka(t).Opts(), kgo.HeartbeatInterval(500*time.Millisecond))
			f(t, consumertest.On(t, append(opts, p.opts...)...))
		}, areas...)
	})
}
