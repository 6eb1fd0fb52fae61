package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// noteWriter writes notes of the server to ledgers. It is safe for concurrent use.
//
// kgo keeps the id of a topic that it saw first, and refuses a ledger that was recreated, until it
// is made to forget the topic. The writer does that.
type noteWriter struct {
	client *kgo.Client

	forgetting sync.Mutex // held while kgo forgets a ledger; before mu

	mu      sync.Mutex
	forgot  map[string]int // by ledger: how often kgo was made to forget it
	closed  bool
	writing sync.WaitGroup // notes whose end was not told
}

func newNoteWriter(client *kgo.Client) *noteWriter {
	return &noteWriter{client: client, forgot: map[string]int{}}
}

// errRecreated reports that a note was not written because its ledger was recreated. The same note
// can be written at once.
var errRecreated = errors.New("the ledger was recreated")

// write writes a note within a time, and returns at once. The notes of a ledger are written in the
// order of the calls. done is called once, with the error.
func (w *noteWriter) write(ctx context.Context, r *kgo.Record, done func(error)) {
	w.mu.Lock()
	forgot, closed := w.forgot[r.Topic], w.closed
	if !closed {
		w.writing.Add(1)
	}
	w.mu.Unlock()
	if closed {
		done(kgo.ErrClientClosed)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	w.client.TryProduce(ctx, r, func(r *kgo.Record, err error) {
		cancel()
		if err == nil {
			done(nil)
			w.writing.Done()
			return
		}
		go func() { // it may wait for kgo, which waits for this function
			defer w.writing.Done()
			done(w.failed(r.Topic, forgot, err))
		}()
	})
}

// failed returns the error of a note that was not written. It wraps errRecreated once kgo has
// forgotten the ledger since the note was handed over; forgot is the number of then.
func (w *noteWriter) failed(ledger string, forgot int, err error) error {
	w.forgetting.Lock()
	defer w.forgetting.Unlock()
	w.mu.Lock()
	again := w.forgot[ledger] != forgot
	w.mu.Unlock()
	if !again && errors.Is(err, kerr.UnknownTopicID) {
		w.client.PurgeTopicsFromProducing(ledger)
		w.mu.Lock()
		w.forgot[ledger]++
		w.mu.Unlock()
		again = true
	}
	if again {
		return fmt.Errorf("%w: %w", errRecreated, err)
	}
	return err
}

// writeNow writes a note, and returns when that is done.
func (w *noteWriter) writeNow(ctx context.Context, r *kgo.Record) (err error) {
	written := make(chan error, 1)
	for range 2 {
		w.write(ctx, r, func(err error) { written <- err })
		if err = <-written; !errors.Is(err, errRecreated) {
			break
		}
		r.Context = nil // it has the first one's time
	}
	return err
}

// close ends the writer when all notes are written, or within noteTime.
func (w *noteWriter) close(ctx context.Context) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	_ = w.client.Flush(ctx) // each note says what became of it
	w.client.Close()
	w.writing.Wait()
}
