package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// forwards are a lane's copies on their way. The lane's lock guards them. They are bounded by MaxInFlight and by the lane's
// share of MaxInFlightBytes, so that one lane without a leader cannot fill the producer. A lane that reached a bound waits
// until half of it is free: else it would stop and go at every acknowledgement.
type forwards struct {
	outstanding int
	bytes       int64
	full        bool
	refused     int                      // of the outstanding ones, those that were refused at least once
	waiting     map[*forward]*time.Timer // of the refused ones, those that wait for their next try
	trouble     string                   // why the last one was refused
	progress    time.Time                // of the last acknowledgement, or of the first copy after a quiet time
}

// room reports whether a record may run whose failure would send another copy. One refused copy holds up its lane: the
// next records would most likely join it.
func (s *forwards) room() bool { return s.refused == 0 && !s.full }

// weigh notes whether the copies are at their bounds.
func (s *forwards) weigh(count int, bytes int64) {
	if s.full {
		count, bytes = count/2, bytes/2
	}
	s.full = s.outstanding > 0 && (s.outstanding >= count || s.bytes >= bytes)
}

// giveUp stops the tries that are still to come: the records stay uncommitted, and the next owner tries.
func (s *forwards) giveUp() {
	for fw, t := range s.waiting {
		t.Stop()
		s.done(fw)
	}
	s.waiting = nil
}

// done takes a copy off the books.
func (s *forwards) done(fw *forward) {
	s.outstanding--
	s.bytes -= fw.size
	if fw.tries > 0 {
		s.refused--
	}
}

// forward is one copy on its way to a sibling. It is safe when the broker acknowledged it with all in-sync replicas; only then
// is the offset that it came from finished.
//
// It is also the context of its produced record, which is how kgo's promise finds it, whatever hooks of the user wrap around.
type forward struct {
	context.Context            // ends when the lane gives up what was not sent
	rec             kgo.Record // kgo's from the first try on
	written         []kgo.RecordHeader
	feed            *feed
	offset          int64
	size            int64
	tries           int
}

type forwardKey struct{}

// Value implements context.Context.
func (fw *forward) Value(key any) any {
	if key == (forwardKey{}) {
		return fw
	}
	return nil
}

// forward sends a copy of the record to a sibling. It returns at once; the record is finished when the copy is safe.
func (l *lane) forward(f *feed, seen *noted, topic string, m *headers.Meta) {
	fw := seen.forward()
	fw.rec = kgo.Record{Topic: topic, Key: seen.key, Value: seen.value, Headers: seen.encode(m)}
	fw.feed, fw.offset = f, seen.offset
	l.send(fw)
}

// forwardMalformed sends a record of a retry topic to the DLQ as it was found.
func (l *lane) forwardMalformed(f *feed, r *kgo.Record, err error) {
	l.send(&forward{feed: f, offset: r.Offset, rec: kgo.Record{
		Topic: l.siblings.DLQ, Key: r.Key, Value: r.Value, Headers: headers.Malformed(r.Headers, err, time.Now()),
	}})
}

func (l *lane) send(fw *forward) {
	fw.Context, fw.rec.Partition, fw.written = l.abandon, l.partition, fw.rec.Headers
	fw.size = recordSize(&fw.rec)
	l.mu.Lock()
	if l.forwards.outstanding == 0 {
		l.forwards.progress = time.Now()
	}
	l.forwards.outstanding++
	l.forwards.bytes += fw.size
	l.settle()
	l.mu.Unlock()
	l.produce(&fw.rec, fw)
}

// produce hands the copy to kgo, which takes it without waiting.
func (l *lane) produce(r *kgo.Record, fw *forward) { l.c.producer.TryProduce(fw, r, l.promised) }

// produceAgain does so with a record made anew, since kgo changes and keeps the one that it is given.
func (l *lane) produceAgain(fw *forward) {
	l.produce(&kgo.Record{
		Topic: fw.rec.Topic, Partition: l.partition, Key: fw.rec.Key, Value: fw.rec.Value, Headers: fw.written,
	}, fw)
}

// promise is kgo's promise of every copy of the lane.
func (l *lane) promise(r *kgo.Record, err error) {
	fw, _ := r.Context.Value(forwardKey{}).(*forward)
	if err == nil {
		l.copied(fw, r) // before the record counts as finished, and without the lane's lock
	}
	l.arrived(fw, err)
}

// arrived is kgo's promise: the copy is safe, or was refused for good. kgo repeats what is worth repeating by itself; what
// is left (a missing topic, a missing right) needs somebody's hand, so the lane waits and tries again at its leisure.
func (l *lane) arrived(fw *forward, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneGone {
		return // the next owner has the record
	}
	if err != nil && l.state < laneDraining {
		l.refuse(fw, err)
		return
	}
	l.forwards.done(fw)
	l.forwards.progress = time.Now()
	if err == nil {
		fw.feed.tracker.finish(fw.offset)
	}
	l.resettle()
	l.notify()
}

// refuse plans the next try of a copy; the caller holds the lock.
func (l *lane) refuse(fw *forward, err error) {
	if fw.tries++; fw.tries == 1 {
		l.forwards.refused++
	}
	wait := backoff(fw.tries, 250*time.Millisecond, 15*time.Second)
	l.forwards.trouble = fw.rec.Topic + ": " + err.Error()
	l.log.Error("siding: a copy was refused; the lane waits and tries again",
		"to", fw.rec.Topic, "from", fw.feed.topic, "offset", fw.offset, "try", fw.tries, "wait", wait, "error", err)
	if l.forwards.waiting == nil {
		l.forwards.waiting = map[*forward]*time.Timer{}
	}
	l.forwards.waiting[fw] = time.AfterFunc(wait, func() {
		l.mu.Lock()
		_, still := l.forwards.waiting[fw]
		delete(l.forwards.waiting, fw)
		l.mu.Unlock()
		if still {
			l.produceAgain(fw)
		}
	})
	l.settle()
}

// resettle is settle after something was given back; it calls for workers when the lane may run again.
func (l *lane) resettle() {
	was := l.hold.Load()
	l.settle()
	if was && !l.hold.Load() {
		l.wakeLocked()
	}
}

// backoff doubles from base to limit.
func backoff(try int, base, limit time.Duration) time.Duration {
	if try > 20 || base<<(try-1) > limit {
		return limit
	}
	return base << (try - 1)
}
