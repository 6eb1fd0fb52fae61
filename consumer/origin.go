package consumer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

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
	alone     atomic.Pointer[lonely] // nil if no record runs alone
}

// runsAlone counts the records that run alone, so that others need not look.
var runsAlone atomic.Int32

// lonely is a record that runs alone, with the way to commit whether it is being decoded.
type lonely struct {
	offset int64
	commit func(isDecoding bool)
	// How long the commits took, in ns: that is no part of the handler's time.
	took  atomic.Int64
	since atomic.Int64 // when the commit that is under way began, in ns; 0 if none is
}

// beginAlone registers that a record runs alone.
func (o *origin) beginAlone(offset int64, commit func(isDecoding bool)) {
	o.alone.Store(&lonely{offset: offset, commit: commit})
	runsAlone.Add(1)
}

// endAlone ends what beginAlone began.
func (o *origin) endAlone() {
	if o.alone.Swap(nil) != nil {
		runsAlone.Add(-1)
	}
}

// setDecoding commits whether the record at an offset is being decoded, if it runs alone.
func (o *origin) setDecoding(offset int64, isDecoding bool) {
	if a := o.alone.Load(); a != nil && a.offset == offset {
		began := time.Now()
		a.since.Store(began.UnixNano())
		defer a.since.Store(0)
		a.commit(isDecoding)
		a.took.Add(int64(time.Since(began)))
	}
}

// waited returns how long the record at an offset waited for the commits of setDecoding.
func (o *origin) waited(offset int64) time.Duration {
	if a := o.alone.Load(); a != nil && a.offset == offset {
		took := time.Duration(a.took.Load())
		if since := a.since.Load(); since > 0 {
			took += time.Since(time.Unix(0, since))
		}
		return took
	}
	return 0
}
