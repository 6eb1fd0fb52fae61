package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/oversize"
)

// Writer writes dead letters to one topic. It is for consumers, and for other code with input that
// it cannot process, such as an HTTP endpoint. It is safe for concurrent use, and need not be
// closed.
type Writer struct {
	cl    *kgo.Client
	topic string
	err   error // why this writer cannot write

	limit   int // bytes of a batch that the client sends, before compression
	maxHeld int

	mu     sync.Mutex
	queues map[int32]*partitionQueue
}

// NewWriter returns a writer to the topic, which should exist: see
// [github.com/sidingkafka/siding/retrytopics.Ensure]. It reports no error: if cl or topic cannot be
// used, each write fails with the reason.
//
// The caller owns the client, and may share it with other code. It needs
//
//   - kgo.RecordPartitioner(kgo.ManualPartitioner()), so that a letter keeps its partition number.
//     Another partitioner chooses the partition by its own rules;
//   - acknowledgement by all replicas in sync, which is kgo's default: with less, each write fails,
//     since an acknowledged letter could be lost;
//   - kgo.ProducerBatchMaxBytes of at least the topic's max.message.bytes, if that was raised. The
//     client counts bytes before compression, and refuses larger letters by itself.
//
// Nothing else should write to the topic through the client, not even a second Writer: a letter
// that is too large has to be sent alone, see Write.
//
// Idempotent writing, kgo's default, should stay on; otherwise a retried request can write a letter
// twice. With a kgo.TransactionalID the letters belong to the client's transaction. Then done only
// means that the brokers have them, not that they are committed.
func NewWriter(cl *kgo.Client, topic string) *Writer {
	w := &Writer{cl: cl, topic: topic, queues: map[int32]*partitionQueue{}}
	switch {
	case cl == nil:
		w.err = errors.New("the client is nil")
	case topic == "":
		w.err = errors.New("the topic name is empty")
	case cl.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks():
		w.err = errors.New("the client does not wait for all replicas in sync (kgo.RequiredAcks): a letter could be lost after it was acknowledged")
	default:
		w.limit, w.maxHeld = clientLimits(cl, topic)
	}
	return w
}

// clientLimits returns the largest batch that the client sends to the topic, in bytes, and how many
// records it buffers.
func clientLimits(cl *kgo.Client, topic string) (bytes, records int) {
	batch, _ := cl.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)
	request, _ := cl.OptValue(kgo.BrokerMaxWriteBytes).(int32)
	buffered, _ := cl.OptValue(kgo.MaxBufferedBytes).(int64)
	held, _ := cl.OptValue(kgo.MaxBufferedRecords).(int64)
	bytes = min(int(batch(topic)), int(request)-requestOverhead)
	if buffered > 0 {
		bytes = min(bytes, int(buffered))
	}
	return bytes, int(held)
}

// requestOverhead is an upper bound of a request's bytes besides its only batch.
const requestOverhead = 1 << 10

// Write copies r to the dead-letter topic: key and value byte for byte (nil stays nil, empty stays
// empty), the user's headers in their order with duplicates, and the partition number. It replaces
// the reserved headers of r by those of m. If m has no reason, it is terminal. The copy's timestamp
// is the time of writing. Write does not change r; the caller must not change it before done is
// called.
//
// A letter that is too large for its topic is written with as much of it as fits. Brokers and
// clients refuse whole batches. So a letter whose batch was refused is sent again alone, while
// later letters to the partition wait. If it is refused again, Write omits its history, stack and
// message, and then its value. The value is omitted only if m.Original names the place where it can
// still be read, and only if the broker refused the letter, not the client alone. Such a letter has
// the field omitted of dlq-meta, and the client's logger (kgo.WithLogger) gets a warning with the
// place. done gets nil for a letter that was written in part.
//
// Write never blocks. done is called once: with nil when all replicas in sync have the letter, or
// with an error that wraps the client's and names both places. After an error the letter is not
// written, and the caller must keep the record:
//
//   - kgo.ErrMaxBuffered: the client's buffer is full; try again when earlier letters are done;
//   - kerr.MessageTooLarge: the letter is too large, and nothing is left that it could do without;
//     raise the topic's max.message.bytes, and the client's kgo.ProducerBatchMaxBytes with it;
//   - an error of ctx: it ended before the letter was sent. A letter in flight cannot be called
//     back.
//
// Wait for done, not for the client's Flush, which does not await letters that wait to be sent
// alone.
//
// done must not block or wait for other letters, and may run before Write returns. The client calls
// it from its own goroutine, one letter at a time. If the client never gets the letter, Write calls
// done on the caller's goroutine, perhaps concurrently with a call of the client. That is so if r
// is nil, the Writer cannot write, or too many letters wait to be sent alone.
func (w *Writer) Write(ctx context.Context, r *kgo.Record, m headers.Meta, done func(error)) {
	if m.Reason == "" {
		m.Reason = headers.ReasonTerminal
	}
	d := &pendingLetter{ctx: ctx, r: r, done: done, omit: m.Original.Topic != ""}
	if d.done == nil {
		d.done = func(error) {}
	}
	if r == nil {
		d.done(fmt.Errorf("dlq: write to %q: the record is nil", w.topic))
		return
	}
	if w.err != nil {
		d.done(w.failed(d, w.err))
		return
	}
	d.headers = m.Append(r.Headers)
	w.mu.Lock()
	l := w.queues[r.Partition]
	if l == nil {
		l = &partitionQueue{}
		w.queues[r.Partition] = l
	}
	now, ok := l.take(d, w.maxHeld)
	w.mu.Unlock()
	switch {
	case !ok:
		d.done(w.failed(d, kgo.ErrMaxBuffered))
	case now:
		w.produce(d)
	}
}

func (w *Writer) produce(d *pendingLetter) {
	w.cl.TryProduce(d.ctx, d.letter(w.topic), func(_ *kgo.Record, err error) { w.back(d, err) })
}

// back handles a letter that the client gave back, and hands it the next ones.
func (w *Writer) back(d *pendingLetter, err error) {
	w.mu.Lock()
	l := w.queues[d.r.Partition]
	l.inFlight, l.single = l.inFlight-1, false
	over := !w.again(l, d, err)
	next := l.next()
	if l.inFlight == 0 { // then none is left: next gives out what waits
		delete(w.queues, d.r.Partition)
	}
	w.mu.Unlock()
	if over {
		if err == nil && d.step.Omits() {
			w.warn(d)
		}
		d.done(w.failed(d, err))
	}
	if len(next) > 0 {
		// This goroutine is the one on which the client finishes records. With a buffer full of
		// failed records, producing here would wait for itself.
		go func() {
			for _, d := range next {
				w.produce(d)
			}
		}()
	}
}

// again queues a letter that was too large, to be sent alone, and reports whether it did. The
// caller holds the lock.
func (w *Writer) again(l *partitionQueue, d *pendingLetter, err error) bool {
	switch {
	case !oversize.Refused(err):
		return false
	case !d.alone:
		d.alone = true // the batch had several letters, and any may be too large
		l.alone = append(l.alone, d)
		return true
	case d.shrink(w.limit):
		l.alone = slices.Insert(l.alone, 0, d)
		return true
	}
	return false
}

func (w *Writer) warn(d *pendingLetter) {
	logger, _ := w.cl.OptValue(kgo.WithLogger).(kgo.Logger)
	if logger == nil || logger.Level() < kgo.LogLevelWarn {
		return
	}
	m, _ := headers.Parse(d.headers) // a value is omitted only where they name its place
	logger.Log(kgo.LogLevelWarn, "siding: dead letter written without its value, which does not fit; raise the topic's max.message.bytes",
		"to", w.topic, "partition", d.r.Partition, "value_at", m.Original.String(), "bytes", len(d.r.Value))
}

// failed adds the places of a letter that was not written to its error; nil stays nil.
func (w *Writer) failed(d *pendingLetter, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dlq: write the letter of %s to %s/%d: %w", d.from(), w.topic, d.r.Partition, err)
}
