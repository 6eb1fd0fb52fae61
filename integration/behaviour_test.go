package integration_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/suite"
)

// Siding's promises on real Kafka, with each group protocol: the same tests as on the embedded
// broker.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p protocol) {
		suite.Run(t, func(t *testing.T, f func(*testing.T, *consumertest.Kafka)) {
			opts := append(shared.Kafka(t).Opts(), kgo.HeartbeatInterval(500*time.Millisecond))
			f(t, consumertest.On(t, append(opts, p.opts...)...))
		})
	})
}
