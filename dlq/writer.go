package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Writer writes dead letters to one topic. It is for consumers, and as well for
// code that is none and has something it cannot process, such as an HTTP ingest.
// It is safe for concurrent use and has nothing to close.
type Writer struct {
	cl    *kgo.Client
	topic string
	err   error // why this writer can't write
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
//   - kgo.ProducerBatchMaxBytes of the topic's max.message.bytes, where that was
//     raised.
//
// Idempotent writing, kgo's default, should stay on, or a retried request can
// write a letter twice. With a kgo.TransactionalID the letters belong to the
// client's transaction, and done means only that the broker has them.
func NewWriter(cl *kgo.Client, topic string) *Writer {
	w := &Writer{cl: cl, topic: topic}
	switch {
	case cl == nil:
		w.err = errors.New("there is no client")
	case topic == "":
		w.err = errors.New("there is no topic")
	case cl.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks():
		w.err = errors.New("the client does not wait for all replicas in sync (kgo.RequiredAcks): a letter could be lost after it was acknowledged")
	}
	return w
}

// Write copies r to the dead-letter topic: key and value byte for byte (nil stays
// nil, empty stays empty), the user's headers in their order with duplicates, and
// the partition number. The reserved headers of r are replaced by those of m,
// which is taken as it is, but for the reason: a letter needs one, and without it
// is terminal. The copy's timestamp is the time of writing. r is not changed, and
// must not be until done was called.
//
// Write never blocks. done is called once: with nil when all replicas in sync
// have the letter, else with an error that wraps the client's and names both
// places. Then the record is still the caller's to keep:
//
//   - kgo.ErrMaxBuffered: the client's buffer is full; try again when earlier
//     letters are done;
//   - kerr.MessageTooLarge: a batch with this letter in it was refused;
//   - an error of ctx: it ended before the letter was sent. A letter that is on
//     its way can't be called back.
//
// The client calls done from its own goroutine, one at a time: done must neither
// block nor wait for other letters. It may run before Write has returned.
func (w *Writer) Write(ctx context.Context, r *kgo.Record, m headers.Meta, done func(error)) {
	if m.Reason == "" {
		m.Reason = headers.ReasonTerminal
	}
	w.send(ctx, r, m.Append, done)
}

// WriteMalformed copies r like [Writer.Write], but keeps all its headers as found,
// broken ones and duplicates too, and replaces only the reason, the class, the
// message, which gets the text of cause, and the time of failure, which is at.
// It is for a record whose reserved headers can't be believed.
func (w *Writer) WriteMalformed(ctx context.Context, r *kgo.Record, cause error, at time.Time, done func(error)) {
	w.send(ctx, r, func(h []kgo.RecordHeader) []kgo.RecordHeader { return headers.Malformed(h, cause, at) }, done)
}

func (w *Writer) send(ctx context.Context, r *kgo.Record, story func([]kgo.RecordHeader) []kgo.RecordHeader, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	if r == nil {
		done(fmt.Errorf("dlq: write to %q: there is no record", w.topic))
		return
	}
	if w.err != nil {
		done(w.failed(r, w.err))
		return
	}
	// A fresh record, since producing one changes it, and the caller's is still
	// needed when this fails.
	letter := &kgo.Record{
		Topic:     w.topic,
		Partition: r.Partition,
		Key:       r.Key,
		Value:     r.Value,
		Headers:   story(r.Headers),
	}
	w.cl.TryProduce(ctx, letter, func(_ *kgo.Record, err error) {
		done(w.failed(r, err))
	})
}

// failed names the places of a letter that was not written; nil stays nil.
func (w *Writer) failed(r *kgo.Record, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dlq: write %s/%d/%d to %s-%d: %w", r.Topic, r.Partition, r.Offset, w.topic, r.Partition, err)
}
