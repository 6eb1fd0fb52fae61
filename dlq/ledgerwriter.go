package dlq

// Writes entries, and names those that failed.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
)

// maxNamed is how many letters an error names. It counts the others.
const maxNamed = 10

// ledgerWriter writes entries to a ledger. Until close returns, its counts belong to promises,
// which kgo calls one at a time.
type ledgerWriter struct {
	ledger   *Ledger
	cl       *kgo.Client
	inFlight sync.WaitGroup // entries in flight
	done     func(headers.Position, error)

	counts  State
	counted int64 // letters with that state
	failed  int64
	named   []error
}

// newLedgerWriter returns a writer, or an error if the ledger's topic is missing or has too few
// partitions. It counts the entries with a state. done, if not nil, is called once for every entry.
func newLedgerWriter(ctx context.Context, l *Ledger, counts State, done func(headers.Position, error)) (*ledgerWriter, error) {
	letters, entries, err := l.poll(ctx)
	switch {
	case err != nil:
		return nil, err
	case entries.Err != nil:
		return nil, fmt.Errorf("the ledger %q does not exist: create it first, compacted, with the partitions of %q (retrytopics.Ensure does)", l.name, l.topic)
	// an entry goes to its letter's partition, so the ledger needs all of them
	case len(entries.Partitions) < len(letters.Partitions):
		return nil, fmt.Errorf("the ledger %q has %d partitions, %q has %d: add partitions to the ledger first", l.name, len(entries.Partitions), l.topic, len(letters.Partitions))
	}
	cl, err := client.New(writeOpts(l.opts)...)
	if err != nil {
		return nil, err
	}
	return &ledgerWriter{ledger: l, cl: cl, counts: counts, done: done}, nil
}

// writeOpts returns the options of a client that writes records to the partitions that they name,
// and whose acknowledgement means that all replicas in sync have them.
func writeOpts(opts []kgo.Opt) []kgo.Opt {
	return append(opts[:len(opts):len(opts)],
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ConsumeTopics(), // the user's options may name topics to read
	)
}

// write writes an entry about a letter. It blocks while too many entries are in flight.
func (n *ledgerWriter) write(ctx context.Context, at place, e Entry) {
	n.inFlight.Add(1)
	n.cl.Produce(ctx, e.Record(n.ledger.name, at.partition, at.offset), func(_ *kgo.Record, err error) {
		defer n.inFlight.Done()
		where := position(n.ledger.topic, at)
		if err != nil {
			err = fmt.Errorf("letter %v: write its ledger entry: %w", where, ended(ctx, err))
			n.fail(err)
		} else if e.State == n.counts {
			n.counted++
		}
		if n.done != nil {
			n.done(where, err)
		}
	})
}

// revokeReports revokes the discard reports about a letter, behind its entry: without the entry, a
// letter whose report is gone would look processed.
func (n *ledgerWriter) revokeReports(ctx context.Context, at place) {
	f := n.ledger.states[at.partition]
	if f == nil {
		return
	}
	for run, reported := range f.reported {
		if !reported.Has(at.offset) {
			continue
		}
		n.inFlight.Add(1)
		n.cl.Produce(ctx, discardReport(&Entry{Run: run}, n.ledger.name, at.partition, at.offset), func(_ *kgo.Record, err error) {
			defer n.inFlight.Done()
			if err != nil {
				n.fail(fmt.Errorf("letter %v: revoke its discard report: %w", position(n.ledger.topic, at), ended(ctx, err)))
			}
		})
	}
}

// fail counts an entry that was not written.
func (n *ledgerWriter) fail(err error) {
	if n.failed++; n.failed <= maxNamed {
		n.named = append(n.named, err)
	}
}

// ended returns the error of a record that was not written. If the context has ended, that is the
// cause, whatever the client reports.
func ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil || errors.Is(err, cause):
		return err
	case errors.Is(err, kgo.ErrClientClosed):
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// close waits for the entries in flight. It returns how many letters have the counted state, and
// why entries were not written.
func (n *ledgerWriter) close(ctx context.Context) (counted int64, err error) {
	_ = n.cl.Flush(ctx) // an error is that of ctx; what did not come through fails one by one
	n.cl.Close()
	n.inFlight.Wait()
	if more := n.failed - int64(len(n.named)); more > 0 {
		n.named = append(n.named, fmt.Errorf("and %d more letters", more))
	}
	return n.counted, errors.Join(n.named...)
}
