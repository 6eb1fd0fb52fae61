package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// A transaction is open for 250 ms at most, since a reader of its targets waits for it, and has 20,000 letters at most.
const (
	txnLength  = 150 * time.Millisecond // and what the commit takes
	txnLetters = 20_000
)

// transaction is what one of the two producers writes at once: copies of letters, the ledger's entries about them, and what else the
// ledger is to be told.
type transaction struct {
	which  int
	cl     *kgo.Client
	began  time.Time
	copies []*outgoing
	notes  []*kgo.Record
}

// outgoing is a letter on its way.
type outgoing struct {
	letter *dlq.Letter
	copy   *kgo.Record
	edited []string
	err    error // set by the broker's answer
}

// fresh is the letter to be sent once more: a client keeps the record that it was given.
func (o *outgoing) fresh() *outgoing {
	c := *o.copy
	c.Offset, c.Attrs = 0, kgo.RecordAttrs{}
	return &outgoing{letter: o.letter, copy: &c, edited: o.edited}
}

func (o *outgoing) place() place { return place{o.letter.Record.Partition, o.letter.Record.Offset} }

func (h *held) begin(which int) (*transaction, error) {
	cl := h.writers.cl[which]
	if err := cl.BeginTransaction(); err != nil {
		return nil, fmt.Errorf("begin: %w: %w", errUncertain, err)
	}
	return &transaction{which: which, cl: cl, began: time.Now()}, nil
}

// add sends a copy.
func (t *transaction) add(o *outgoing) {
	t.copies = append(t.copies, o)
	t.cl.Produce(context.Background(), o.copy, func(_ *kgo.Record, err error) { o.err = err })
}

// ended is how a transaction ended.
type ended struct {
	*transaction
	committed bool
	refused   []*outgoing // that the broker will not take, whatever is with them; none was written
	err       error
}

// end waits for the copies, writes the ledger's entries, and commits after the transaction before, unless stop is closed by then. It
// runs beside the next one's filling.
func (h *held) end(ctx context.Context, t *transaction, before, stop <-chan struct{}, broken *atomic.Bool) (e ended) {
	e.transaction = t
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*txnTimeout)
	defer cancel()
	if err := t.cl.Flush(ctx); err != nil {
		e.err = fmt.Errorf("write copies: %w: %w", errUncertain, err)
		return e
	}
	for _, o := range t.copies {
		switch {
		case o.err == nil:
		case isRefusal(o.err):
			e.refused = append(e.refused, o)
		case isDenied(o.err):
			abort(t.cl)
			e.err = Denied("WRITE", "topic", o.copy.Topic, o.err)
			return e
		default:
			e.err = fmt.Errorf("write the copy of %v to %s/%d: %w: %w", o.place().position(h.topics.dlq), o.copy.Topic, o.copy.Partition, errUncertain, o.err)
			return e
		}
	}
	if len(e.refused) > 0 {
		abort(t.cl)
		return e
	}
	records := slices.Clip(t.notes)
	for _, o := range t.copies {
		records = append(records, h.entry(o.place(), dlq.Entry{State: dlq.Redriven, Target: target(o.copy), Edited: o.edited}))
	}
	if err := t.cl.ProduceSync(ctx, records...).FirstErr(); isDenied(err) {
		abort(t.cl)
		e.err = Denied("WRITE", "topic", h.topics.ledger, err)
		return e
	} else if err != nil {
		e.err = fmt.Errorf("write to the ledger: %w: %w", errUncertain, err)
		return e
	}
	select {
	case <-before:
	case <-ctx.Done():
		e.err = fmt.Errorf("commit: %w: %w", errUncertain, ctx.Err())
		return e
	}
	select {
	case <-stop:
		abort(t.cl)
		return e
	default:
	}
	if broken.Load() {
		e.err = fmt.Errorf("the transaction before was not committed: %w", errUncertain)
		return e
	}
	if err := t.cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		e.err = fmt.Errorf("commit: %w: %w", errUncertain, err)
		return e
	}
	e.committed = true
	return e
}

// isDenied reports whether the user may not write: somebody has to grant it, and going on by itself would not.
func isDenied(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed)
}

func target(r *kgo.Record) headers.Position {
	return headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
}

// isRefusal reports whether a broker, or the client, will not take this very record.
func isRefusal(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) || errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp)
}

// sentLetters are those of a transaction that is committed.
func (t *transaction) sentLetters(hops int) []sentLetter {
	all := make([]sentLetter, 0, len(t.copies))
	for _, o := range t.copies {
		all = append(all, sentLetter{at: o.place(), target: target(o.copy), hops: hops, group: o.letter.Meta.Group})
	}
	return all
}
