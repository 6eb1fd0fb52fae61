package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

// origin is what the attempts at the records of one feed have in common. It is made with the feed
// and never changed.
type origin struct {
	source    string        // its lane's topic
	topicID   kadm.TopicID  // of that
	topic     string        // where the records were read: the source or a retry topic
	partition int32         // of both
	delay     time.Duration // of the tier; zero for the source
	group     string        // its oldest name, for idempotency keys
	policy    *Policy
	clock     *clock.Clock
	values    context.Context // of the context that Run was given
	sig       signals
}
