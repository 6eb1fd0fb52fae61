package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

// origin holds what all attempts of one feed share. It is made with the feed, and never changes.
type origin struct {
	source    string        // the lane's topic
	topicID   kadm.TopicID  // of source
	topic     string        // where the records were read: the source or a retry topic
	partition int32         // of both
	delay     time.Duration // of the tier; zero for the source
	group     string        // the group's oldest name, for idempotency keys
	policy    *Policy
	clock     *clock.Clock
	values    context.Context // of Run's context
	sig       signals
}
