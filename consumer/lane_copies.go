package consumer

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// copySource is what a runner notes of a record before the handler has it: the material of its
// copy.
type copySource struct {
	forward.Source
	timestamp   time.Time
	redrive     headers.Redrive // that counts on a source record
	traceParent string          // of the attempt that failed
}

// onOversize maps Policy.OnOversize.
var onOversize = map[Disposition]forward.Oversize{DeadLetter: forward.Omit, Discard: forward.Drop, Stop: forward.Halt}

// initCopies gives the lane's copies what they need.
func (l *lane) initCopies() {
	l.copies.Init(forward.Config{
		Lane: copyLane{l}, Observer: copyLane{l}, Clients: l.c.copyClients, Context: l.abandon,
		Partition: l.partition, DLQ: l.siblings.DLQ, OnOversize: onOversize[l.policy.OnOversize],
	})
}

// forward sends a copy of the record to a sibling. It returns at once; the record is finished when
// the copy is safe.
func (l *lane) forward(f *feed, seen *copySource, topic string, m *headers.Meta, now time.Time) {
	l.copies.Send(seen.Copy(f, topic, m, now))
}

// forwardMalformed sends a record of a retry topic to the DLQ as it was found. The message says
// where that was: the record's original coordinates may be what is broken, and if its value does
// not fit, it is found there.
func (l *lane) forwardMalformed(f *feed, r *kgo.Record, err error) {
	err = fmt.Errorf("%s/%d/%d: %w", f.topic, l.partition, r.Offset, err)
	l.copies.Send(forward.NewCopy(f, r.Offset, kgo.Record{
		Topic: l.siblings.DLQ, Key: r.Key, Value: r.Value, Headers: headers.Malformed(r.Headers, err, time.Now()),
	}))
}
