package notes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

// timeout is how long the brokers may take for a note.
const timeout = 10 * time.Second

// Writer writes notes of the server to ledgers. It is safe for concurrent use.
//
// kgo keeps the id of a topic that it saw first, and refuses a ledger that was recreated, until it
// is made to forget the topic. The writer does that.
type Writer struct {
	client *kgo.Client

	forgetting sync.Mutex // held while kgo forgets a ledger; before mu

	mu      sync.Mutex
	forgot  map[string]int // by ledger: how often kgo was made to forget it
	closed  bool
	writing sync.WaitGroup // notes whose end was not reported
}

// New makes a writer. The caller closes it.
func New(kafka ...kgo.Opt) (*Writer, error) {
	cl, err := client.New(append(kafka[:len(kafka):len(kafka)], kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, err
	}
	return &Writer{client: cl, forgot: map[string]int{}}, nil
}

// ErrRecreated reports that a note was not written because its ledger was recreated. The same note
// can be written at once.
var ErrRecreated = errors.New("the ledger was recreated")

// Write writes a note within a time, and returns at once. The notes of a ledger are written in the
// order of the calls. done is called once, with the error.
func (w *Writer) Write(ctx context.Context, r *kgo.Record, done func(error)) {
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
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

// failed returns the error of a note that was not written. It wraps ErrRecreated once kgo has
// forgotten the ledger since the note was handed over; forgot is the number of then.
func (w *Writer) failed(ledger string, forgot int, err error) error {
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
		return fmt.Errorf("%w: %w", ErrRecreated, err)
	}
	return err
}

// WriteNow writes a note, and returns when that is done.
func (w *Writer) WriteNow(ctx context.Context, r *kgo.Record) (err error) {
	written := make(chan error, 1)
	for range 2 {
		w.Write(ctx, r, func(err error) { written <- err })
		if err = <-written; !errors.Is(err, ErrRecreated) {
			break
		}
		r.Context = nil // it has the first one's time
	}
	return err
}

// Close ends the writer when all notes are written, or within timeout.
func (w *Writer) Close(ctx context.Context) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = w.client.Flush(ctx) // each note says what became of it
	w.client.Close()
	w.writing.Wait()
}
