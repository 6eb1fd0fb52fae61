package consumer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

// runsAlone counts the records that run alone, so that others need not look.
var runsAlone atomic.Int32

// origin holds what all attempts of one feed share. It is made with the feed.
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
	// tells whether the record that runs alone is being decoded; nil if none runs alone
	alone atomic.Pointer[func(offset int64, decoding bool)]
}
