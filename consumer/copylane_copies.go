package consumer

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// copySource is what a copy needs of its record, kept from before the handler gets the record.
type copySource struct {
	forward.Source
	timestamp   time.Time
	redriven    *headers.Meta     // of a redriven source record: see cleanSource
	traceParent string            // of the failed attempt
	earlier     []headers.Attempt // calls of this delivery that failed and were repeated in place
}

// mostEarlier is more entries than the history ever has: the shortest has 27 bytes.
const mostEarlier = headers.MaxHistory / 24

// keepEarlier keeps a call that failed and is repeated in place. It keeps what a header may have of
// an error's text, and the newest calls, beside the first, at which the record first failed.
func (s *copySource) keepEarlier(a headers.Attempt, message string) {
	if len(s.earlier) > mostEarlier {
		s.earlier = slices.Delete(s.earlier, 1, 2)
	}
	a.Message = cut(message, headers.MaxHistoryMessage+utf8.UTFMax)
	s.earlier = append(s.earlier, a)
}

// onOversize maps Policy.OnOversize.
var onOversize = map[Disposition]forward.Oversize{DeadLetter: forward.Omit, Discard: forward.Drop, Stop: forward.Halt}

// initCopies configures the lane's copies.
func (l copyLane) initCopies() {
	l.copies.Init(forward.Config{
		Lane: l, Observer: l, Clients: l.c.copyClients, Context: l.abandon,
		Partition: l.partition, DLQ: l.siblings.DLQ, OnOversize: onOversize[l.policy.OnOversize],
	})
}

// forward sends a copy of the record to a sibling, and returns at once. The record is finished when
// the copy is acknowledged.
func (l copyLane) forward(f *feed, seen *copySource, topic string, m *headers.Meta, now time.Time) {
	l.copies.Send(seen.Copy(f, topic, m, now))
}

// forwardMalformed sends a record of a retry topic to the dead-letter topic unchanged. The message
// gives its position on the retry topic: the original position may be broken, and the value can be
// read there if the letter lacks it.
func (l copyLane) forwardMalformed(f *feed, r *kgo.Record, err error) {
	err = fmt.Errorf("%s/%d/%d: %w", f.topic, l.partition, r.Offset, err)
	l.copies.Send(forward.NewCopy(f, r.Offset, kgo.Record{
		Topic: l.siblings.DLQ, Key: r.Key, Value: r.Value, Headers: headers.Malformed(r.Headers, err, time.Now()),
	}))
}
