package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/oversize"
)

// forwards are a lane's copies on their way. The lane's lock guards them. They are bounded by MaxInFlight and by the lane's
// share of MaxInFlightBytes, so that one lane without a leader cannot fill the producer. A lane that reached a bound waits
// until half of it is free: else it would stop and go at every acknowledgement.
// See DESIGN.md, "Copies".
type forwards struct {
	outstanding  int
	bytes        int64
	full         bool
	acknowledged int                      // acknowledged since the lane was assigned, as far as it matters
	refused      int                      // of the outstanding ones, those that were refused at least once, other than to be sent alone
	waiting      map[*forward]*time.Timer // of the outstanding ones, those that kgo has not: until their next try, or (nil) their turn alone
	trouble      string                   // why the last one was refused
	progress     time.Time                // of the last acknowledgement, or of the first copy after a quiet time
	omitted      int                      // dead letters that were written without their value
}

// room reports whether a record may run whose failure would send another copy. One refused copy holds up its lane: the
// next records would most likely join it.
func (s *forwards) room() bool { return s.refused == 0 && !s.full }

// firstCopies is how many copies a new lane has on their way before the first is acknowledged. Each acknowledgement doubles it, up to
// the bound: so where copies can't be written, a lane that comes from another owner runs no further than that before it knows.
const firstCopies = 8

// setBounds notes whether the copies are at their bounds.
func (s *forwards) setBounds(count int, bytes int64) {
	count = min(count, firstCopies<<s.acknowledged)
	if s.full {
		count, bytes = count/2, bytes/2
	}
	s.full = s.outstanding > 0 && (s.outstanding >= count || s.bytes >= bytes)
}

// cancelRetries stops the tries that are still to come: the records stay uncommitted, and the next owner tries.
func (s *forwards) cancelRetries() {
	for fw, t := range s.waiting {
		if t != nil {
			t.Stop()
		}
		s.done(fw)
	}
	s.waiting = nil
}

// wait notes a copy that kgo has not.
func (s *forwards) wait(fw *forward, t *time.Timer) {
	if s.waiting == nil {
		s.waiting = map[*forward]*time.Timer{}
	}
	s.waiting[fw] = t
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
	due             time.Time // of a copy to a tier
	size            int64
	tries           int32         // that were refused
	checks          int8          // for its partition, see growthChecks
	producer        *producer     // the client that has it, or had it last
	generation      int32         // of its topic for that client, see remade
	partition       int32         // the lane's, but for a note about a letter that is elsewhere
	alone           bool          // it goes by Consumer.solo: a batch that it was in was too large
	note            bool          // for the ledger, see discard.go
	shrunk          oversize.Step // what of it was given up
}

type forwardKey struct{}

// Value implements context.Context.
func (fw *forward) Value(key any) any {
	if key == (forwardKey{}) {
		return fw
	}
	return nil
}

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
	if err := l.c.producer.produce(fw, r, l.promiseFunc); err != nil {
		l.arrived(fw, err)
	}
}

// produce hands a copy to the current client; the promise gives that back. There is an error where none can be made.
func (ps *producers) produce(fw *forward, r *kgo.Record, promise func(*kgo.Record, error)) error {
	p, err := ps.take()
	if err != nil {
		return err
	}
	fw.producer, fw.generation = p, p.staleIDs.generation.Load()
	p.TryProduce(fw, r, promise)
	return nil
}

// at is where the copy goes.
func (fw *forward) at() topicPartition {
	return topicPartition{fw.rec.Topic, fw.partition}
}

// sender are the clients that the copy goes by.
func (fw *forward) sender() *producers {
	c := fw.feed.lane.c
	if fw.alone {
		return &c.single.producers
	}
	return &c.producer
}

// headers are those that the copy is written with.
func (fw *forward) headers() []kgo.RecordHeader {
	h, _ := fw.shrunk.Of(fw.written, nil)
	return h
}

// freshRecord is the record of the next try, made anew, since kgo changes and keeps the one that it is given.
func (fw *forward) freshRecord() *kgo.Record {
	h, value := fw.shrunk.Of(fw.written, fw.rec.Value)
	return &kgo.Record{Topic: fw.rec.Topic, Partition: fw.partition, Key: fw.rec.Key, Value: value, Headers: h}
}

// promise is kgo's promise of every copy of the lane.
func (l *lane) promise(r *kgo.Record, err error) {
	fw, _ := r.Context.Value(forwardKey{}).(*forward)
	by := fw.producer // a copy that is sent alone next gets another
	if err == nil {
		l.copied(fw, r) // before the record counts as finished, and without the lane's lock
	}
	l.arrived(fw, err)
	by.back()
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
		l.scheduleRetry(fw, refreshAhead)
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
	l.forwards.progress = l.c.clock.about()
	if safe {
		l.forwards.acknowledged = min(l.forwards.acknowledged+1, 24) // beyond any bound
		fw.feed.tracker.finish(fw.offset)
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
	if fw.producer != nil {
		fw.producer.suspectOf(err)
		if errors.Is(err, kerr.UnknownTopicID) {
			fw.producer.staleIDs.mark(fw.rec.Topic, fw.generation)
		}
	}
	l.scheduleRetry(fw, retryWait(fw.tries))
	l.updateHold()
	return copyRefused
}

// retryWait is how long a copy waits that was refused so many times.
func retryWait(tries int32) time.Duration {
	return backoff(int(tries), refreshAhead, 15*time.Second)
}

// scheduleRetry has a copy tried again after a while, and its client made ready for that a moment before; the caller holds the lock.
func (l *lane) scheduleRetry(fw *forward, wait time.Duration) {
	l.forwards.wait(fw, time.AfterFunc(wait-refreshAhead, func() {
		fw.sender().refreshFor(l.c.ctx, fw.rec.Topic)
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, still := l.forwards.waiting[fw]; still {
			l.forwards.wait(fw, time.AfterFunc(refreshAhead, func() { l.retryCopy(fw) }))
		}
	}))
}

// logRefused logs that a copy was refused: all of a lane's are at the same time, so the log has one line with how many.
func (l *lane) logRefused(fw *forward, to string, tries int32, err error) {
	level, times := slog.LevelDebug, 1
	if n, due := l.c.throttle.due([]byte("refused"+to+err.Error()), logEvery); due {
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

// recheckHold is settle after something was given back; it calls for workers when the lane may run again.
func (l *lane) recheckHold() {
	was := l.hold.Load()
	l.updateHold()
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
