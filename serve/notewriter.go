package serve

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// noteWriter writes notes of the server to ledgers. It is safe for concurrent use.
type noteWriter struct {
	client  *kgo.Client
	purging sync.WaitGroup
}

// write writes a note within a time, and returns at once. The notes of a ledger are written in the
// order of the calls. done is called with the error.
//
// kgo keeps the id of the topic that it saw first, and refuses a ledger that was recreated, until
// it is made to forget the topic. That is done before done hears of it: the next note is written.
func (w *noteWriter) write(ctx context.Context, r *kgo.Record, done func(error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	w.client.Produce(ctx, r, func(r *kgo.Record, err error) {
		cancel()
		if !errors.Is(err, kerr.UnknownTopicID) {
			done(err)
			return
		}
		w.purging.Go(func() { // it waits for kgo, which waits for this function
			w.client.PurgeTopicsFromProducing(r.Topic)
			done(err)
		})
	})
}

// writeNow writes a note, and returns when that is done.
func (w *noteWriter) writeNow(ctx context.Context, r *kgo.Record) error {
	written := make(chan error, 1)
	w.write(ctx, r, func(err error) { written <- err })
	err := <-written
	if errors.Is(err, kerr.UnknownTopicID) {
		w.write(ctx, r, func(err error) { written <- err })
		err = <-written
	}
	return err
}

// close ends the writer when all notes are written, or within noteTime.
func (w *noteWriter) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	_ = w.client.Flush(ctx) // each note says what became of it
	w.purging.Wait()
	w.client.Close()
}
