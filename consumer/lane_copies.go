package consumer

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/oversize"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	forward_ "github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
)

// forward sends a copy of the record to a sibling. It returns at once; the record is finished when the copy is safe. now spares kgo
// another look at the clock.
func (l *lane) forward(f *feed, seen *copySource, topic string, m *headers.Meta, now time.Time) {
	fw := seen.forward()
	fw.rec = kgo.Record{Topic: topic, Key: seen.key, Value: seen.value, Headers: seen.encode(m), Timestamp: now}
	fw.feed, fw.offset, fw.due = f, seen.offset, m.NotBefore
	l.send(fw)
}

// forwardMalformed sends a record of a retry topic to the DLQ as it was found. Where it was found is said in its message: its
// original coordinates may be what is broken, and if its value does not fit, that is where it is.
func (l *lane) forwardMalformed(f *feed, r *kgo.Record, err error) {
	err = fmt.Errorf("%s/%d/%d: %w", f.topic, l.partition, r.Offset, err)
	l.send(&forward{feed: f, offset: r.Offset, rec: kgo.Record{
		Topic: l.siblings.DLQ, Key: r.Key, Value: r.Value, Headers: headers.Malformed(r.Headers, err, time.Now()),
	}})
}

func (l *lane) send(fw *forward) {
	if !fw.note {
		fw.rec.Partition = l.partition
	}
	fw.Context, fw.partition, fw.written = l.abandon, fw.rec.Partition, fw.rec.Headers
	fw.size = recordSize(&fw.rec)
	l.mu.Lock()
	if l.forwards.outstanding == 0 {
		l.forwards.progress = time.Now()
	}
	l.forwards.outstanding++
	l.forwards.bytes += fw.size
	l.updateHold()
	l.mu.Unlock()
	l.produce(&fw.rec, fw)
}

// produce hands the copy to kgo, which takes it without waiting.
func (l *lane) produce(r *kgo.Record, fw *forward) {
	if err := fw.via.Produce(fw, &l.c.producer, r, l.promiseFunc); err != nil {
		l.arrived(fw, err)
	}
}

// promise is kgo's promise of every copy of the lane.
func (l *lane) promise(r *kgo.Record, err error) {
	fw, _ := r.Context.Value(forwardKey{}).(*forward)
	by := fw.via // a copy that is sent alone next gets another
	if err == nil {
		l.copied(fw, r) // before the record counts as finished, and without the lane's lock
	}
	l.arrived(fw, err)
	by.Back()
}

// arrived is kgo's promise: the copy is safe, or was refused for good. kgo repeats what is worth repeating by itself. What is
// left is a copy that may be too large, see oversize.go; and what needs somebody's hand (a missing topic, a missing right), so
// the lane waits and tries again at its leisure.
func (l *lane) arrived(fw *forward, err error) {
	l.mu.Lock()
	became := l.landed(fw, err)
	to, tries := fw.rec.Topic, fw.tries
	l.mu.Unlock()
	switch became {
	case copyDone:
	case copyRefused:
		l.logRefused(fw, to, tries, err)
	case copyUnheard:
		l.log.Error("siding: a record that was brought back is discarded, and the ledger could not be told", "ledger", to, "error", err)
	default:
		l.reportCopy(fw, became)
	}
	switch became {
	case copyAlone, copyDiverted:
		l.c.single.send(fw)
	case copyDiscarded:
		l.dropCopy(fw)
	}
}

// landed keeps the books of a copy that came back; the caller holds the lock.
func (l *lane) landed(fw *forward, err error) copyResult {
	switch {
	case l.state == laneGone:
		return copyDone // the next owner has the record
	case err == nil || l.state >= laneDraining:
		return l.finishCopy(fw, err == nil)
	case fw.unwritable(err):
		l.finishCopy(fw, true)
		return copyUnheard
	case oversize.Refused(err):
		return l.tooLarge(fw, err)
	case fw.checks < growthChecks && isNewPartition(err):
		fw.checks++
		l.scheduleRetry(fw, forward_.RefreshAhead)
		return copyDone
	}
	return l.refuse(fw, fw.rec.Topic+": "+err.Error(), err)
}

// growthChecks is how often a client looks at its topics for the partition of a copy before the copy counts as refused: for some three
// seconds, in which siblings that grew with their source come up.
const growthChecks = 12

// isNewPartition reports whether kgo refuses a copy since it knows of fewer partitions, which it learns by itself within five minutes. It
// says that in words alone.
func isNewPartition(err error) bool {
	return strings.HasPrefix(err.Error(), "invalid record partitioning choice")
}

// finishCopy takes a copy off the books, and finishes its record if that is safe; the caller holds the lock.
func (l *lane) finishCopy(fw *forward, safe bool) (became copyResult) {
	l.forwards.done(fw)
	l.forwards.progress = l.c.clock.About()
	if safe {
		l.forwards.acknowledged = min(l.forwards.acknowledged+1, 24) // beyond any bound
		fw.feed.tracker.Finish(fw.offset)
		if fw.shrunk.Omits() {
			l.forwards.omitted++
			became = copyOmitted
		}
	}
	l.recheckHold()
	l.notify()
	return became
}

// refuse plans the next try of a copy; the caller holds the lock.
func (l *lane) refuse(fw *forward, why string, err error) copyResult {
	if fw.tries++; fw.tries == 1 {
		l.forwards.refused++
	}
	l.forwards.trouble = why
	l.c.topics.suspect(fw.rec.Topic, err)
	fw.via.Refused(fw.rec.Topic, err)
	l.scheduleRetry(fw, retryWait(fw.tries))
	l.updateHold()
	return copyRefused
}

// retryWait is how long a copy waits that was refused so many times.
func retryWait(tries int32) time.Duration {
	return backoff.Of(int(tries), forward_.RefreshAhead, 15*time.Second)
}

// scheduleRetry has a copy tried again after a while, and its client made ready for that a moment before; the caller holds the lock.
func (l *lane) scheduleRetry(fw *forward, wait time.Duration) {
	l.forwards.wait(fw, time.AfterFunc(wait-forward_.RefreshAhead, func() {
		fw.sender().MakeReady(l.c.ctx, fw.rec.Topic)
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, still := l.forwards.waiting[fw]; still {
			l.forwards.wait(fw, time.AfterFunc(forward_.RefreshAhead, func() { l.retryCopy(fw) }))
		}
	}))
}

// logRefused logs that a copy was refused: all of a lane's are at the same time, so the log has one line with how many.
func (l *lane) logRefused(fw *forward, to string, tries int32, err error) {
	level, times := slog.LevelDebug, 1
	if n, due := l.c.throttle.Due([]byte("refused"+to+err.Error()), logthrottle.Every); due {
		level, times = slog.LevelError, n
	}
	l.log.Log(l.c.ctx, level, "siding: a copy was refused; the lane waits and tries again", "to", to, "from", fw.feed.topic,
		"offset", fw.offset, "try", tries, "wait", retryWait(tries), "refusals", times, "error", err)
}

// retryCopy sends a refused copy again, unless the lane has given it up.
func (l *lane) retryCopy(fw *forward) {
	l.mu.Lock()
	_, still := l.forwards.waiting[fw]
	switch {
	case !still:
	case fw.alone:
		l.forwards.wait(fw, nil)
	default:
		delete(l.forwards.waiting, fw)
	}
	l.mu.Unlock()
	if !still {
		return
	}
	if fw.alone {
		l.c.single.send(fw)
		return
	}
	l.produce(fw.freshRecord(), fw)
}

// takesTurn reports whether the lane still wants a copy sent that waited for its turn alone.
func (l *lane) takesTurn(fw *forward) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, still := l.forwards.waiting[fw]
	delete(l.forwards.waiting, fw)
	return still
}
