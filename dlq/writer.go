package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/oversize"
)

// Writer writes dead letters to one topic. It is for consumers, and as well for
// code that is none and has something it cannot process, such as an HTTP ingest.
// It is safe for concurrent use and has nothing to close.
type Writer struct {
	cl    *kgo.Client
	topic string
	err   error // why this writer can't write

	limit   int // bytes of a batch that the client sends, before compression
	maxHeld int

	mu     sync.Mutex
	queues map[int32]*partitionQueue
}

// NewWriter returns a writer to the topic, which should exist: see
// [github.com/sidingkafka/siding/retrytopics.Ensure].
//
// The client is the caller's, and may be shared. It needs
//
//   - kgo.RecordPartitioner(kgo.ManualPartitioner()), so that a letter keeps its
//     partition number. With any other partitioner the letter goes where that one
//     wants it;
//   - acknowledgement by all replicas in sync, which is kgo's default: a writer
//     refuses to write with less, since its letters could be lost after done said
//     that they are safe;
//   - kgo.ProducerBatchMaxBytes of the topic's max.message.bytes at least, where
//     that was raised. The client counts bytes before compression, and refuses
//     what is larger, whatever the broker would have said.
//
// Only one writer should write to the topic through the client, and nothing else:
// a letter that is too large has to go alone, see Write.
//
// Idempotent writing, kgo's default, should stay on, or a retried request can
// write a letter twice. With a kgo.TransactionalID the letters belong to the
// client's transaction, and done means only that the broker has them.
func NewWriter(cl *kgo.Client, topic string) *Writer {
	w := &Writer{cl: cl, topic: topic, queues: map[int32]*partitionQueue{}}
	switch {
	case cl == nil:
		w.err = errors.New("there is no client")
	case topic == "":
		w.err = errors.New("there is no topic")
	case cl.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks():
		w.err = errors.New("the client does not wait for all replicas in sync (kgo.RequiredAcks): a letter could be lost after it was acknowledged")
	default:
		w.limit, w.maxHeld = clientLimits(cl, topic)
	}
	return w
}

// clientLimits are how large a batch to the topic the client sends, and how many records it holds.
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

// requestOverhead is more than a request takes besides its only batch.
const requestOverhead = 1 << 10

// Write copies r to the dead-letter topic: key and value byte for byte (nil stays
// nil, empty stays empty), the user's headers in their order with duplicates, and
// the partition number. The reserved headers of r are replaced by those of m,
// which is taken as it is, but for the reason: a letter needs one, and without it
// is terminal. The copy's timestamp is the time of writing. r is not changed, and
// must not be until done was called.
//
// A letter that is too large for its topic is written nevertheless, with as much
// of it as fits. Brokers and clients refuse whole batches, so a letter whose batch
// was refused is sent again alone, while later letters to the partition wait; only
// refused alone it is written without history, stack and message, and if need be
// without its value: where m.Original says at which place that still can be read,
// and the letter is too large for the broker and not only for the client. It then
// has dlq-value-omitted, and a warning with the place goes to the client's logger
// (kgo.WithLogger). What is left of a letter is what its reader finds: to done it
// is written.
//
// Write never blocks. done is called once: with nil when all replicas in sync
// have the letter, else with an error that wraps the client's and names both
// places. Then the record is still the caller's to keep:
//
//   - kgo.ErrMaxBuffered: the client's buffer is full; try again when earlier
//     letters are done;
//   - kerr.MessageTooLarge: the letter is too large, and nothing is left that it
//     could do without; raise the topic's max.message.bytes, and the client's
//     kgo.ProducerBatchMaxBytes with it;
//   - an error of ctx: it ended before the letter was sent. A letter that is on
//     its way can't be called back.
//
// Wait for done, not for the client's Flush, which knows nothing of letters that
// wait to be sent alone.
//
// done must neither block nor wait for other letters, and may run before Write has
// returned. The client calls it from its own goroutine, one at a time; for a letter
// that the client never got (r is nil, the Writer can't write, or too many letters
// wait to be sent alone) Write itself does, on the caller's goroutine, where calls
// may be concurrent with those of the client.
func (w *Writer) Write(ctx context.Context, r *kgo.Record, m headers.Meta, done func(error)) {
	if m.Reason == "" {
		m.Reason = headers.ReasonTerminal
	}
	w.send(&pendingLetter{ctx: ctx, r: r, done: done, omit: m.Original.Topic != ""}, m.Append)
}

// WriteMalformed copies r like [Writer.Write], but keeps all its headers as found,
// broken ones and duplicates too, and replaces only the reason, the class, the
// message, which gets the text of cause, and the time of failure, which is at.
// It is for a record whose reserved headers can't be believed. If its value has to
// be left out, the message begins with r's own topic, partition and offset, where
// it is.
func (w *Writer) WriteMalformed(ctx context.Context, r *kgo.Record, cause error, at time.Time, done func(error)) {
	d := &pendingLetter{ctx: ctx, r: r, done: done, omit: r != nil && r.Topic != ""}
	d.located = func() []kgo.RecordHeader {
		return headers.Malformed(r.Headers, fmt.Errorf("%s: %w", d.from(), cause), at)
	}
	w.send(d, func(h []kgo.RecordHeader) []kgo.RecordHeader { return headers.Malformed(h, cause, at) })
}

func (w *Writer) send(d *pendingLetter, story func([]kgo.RecordHeader) []kgo.RecordHeader) {
	if d.done == nil {
		d.done = func(error) {}
	}
	if d.r == nil {
		d.done(fmt.Errorf("dlq: write to %q: there is no record", w.topic))
		return
	}
	if w.err != nil {
		d.done(w.failed(d, w.err))
		return
	}
	d.headers = story(d.r.Headers)
	w.mu.Lock()
	l := w.queues[d.r.Partition]
	if l == nil {
		l = &partitionQueue{}
		w.queues[d.r.Partition] = l
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

// back takes a letter back from the client, and sees to what goes there next.
func (w *Writer) back(d *pendingLetter, err error) {
	w.mu.Lock()
	l := w.queues[d.r.Partition]
	l.back()
	over := !w.again(l, d, err)
	next := l.next()
	if l.empty() {
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
		// Not from here: this is the goroutine that the client finishes records on, and a buffer
		// that is full of failures would have it wait for itself.
		go func() {
			for _, d := range next {
				w.produce(d)
			}
		}()
	}
}

// again puts a letter that was too large in line, to be sent alone; the caller holds the lock.
func (w *Writer) again(l *partitionQueue, d *pendingLetter, err error) bool {
	switch {
	case !oversize.Refused(err):
		return false
	case !d.alone:
		d.alone = true // of several, any may be the one
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
	at := d.from()
	if m, err := headers.Parse(d.headers); err == nil {
		at = m.Original.String()
	}
	logger.Log(kgo.LogLevelWarn, "siding: dead letter written without its value, which does not fit; raise the topic's max.message.bytes",
		"to", w.topic, "partition", d.r.Partition, "value_at", at, "bytes", len(d.r.Value))
}

// failed names the places of a letter that was not written; nil stays nil.
func (w *Writer) failed(d *pendingLetter, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dlq: write %s to %s-%d: %w", d.from(), w.topic, d.r.Partition, err)
}
