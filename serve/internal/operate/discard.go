package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// DiscardLetter discards an open letter.
func DiscardLetter(ctx context.Context, d *Desk, who *access.Identity, in *request.Discard) (api.Resolved, error) {
	f := api.Filter{Offset: []string{fmt.Sprintf("%d:%d", in.Partition, in.Offset)}}
	got, err := discard(ctx, d, who, in.Topic.Topic, &f, 1, &in.Body)
	if !failure.IsProblem(err, api.WrongNumber) {
		return got, err
	}
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, access.Operator)
	if err != nil {
		return got, err
	}
	l, _, err := findLetter(ctx, d, t, &in.Letter)
	if err != nil {
		return got, err
	}
	return got, failure.NewProblem(api.NotOpen, "letter %s/%d/%d is %s: only an open letter can be discarded", in.Topic.Topic, in.Partition, in.Offset, l.State)
}

// DiscardLetters discards the open letters that a filter selects, if their number is the expected
// one.
func DiscardLetters(ctx context.Context, d *Desk, who *access.Identity, in *request.BulkDiscard) (api.Resolved, error) {
	return discard(ctx, d, who, in.Topic.Topic, &in.Body.Filter, in.Body.Expect, &in.Body.DiscardRequest)
}

// places are letters by partition, in the order of their offsets.
type places map[int32][]int64

func (p places) has(l *dlq.Letter) bool {
	_, ok := slices.BinarySearch(p[l.Record.Partition], l.Record.Offset)
	return ok
}

// stillOpen returns a problem if one of the letters is resolved by now. It sorts their offsets.
func (p places) stillOpen(topic string, ledger *dlq.Ledger) error {
	for partition, offsets := range p {
		slices.Sort(offsets)
		for _, offset := range offsets {
			if state := ledger.State(partition, offset); state.Resolves() {
				return failure.NewProblem(api.Changed, "letter %s/%d/%d is %s by now: nothing was done; look again at what the filter selects", topic, partition, offset, state)
			}
		}
	}
	return nil
}

// discard discards letters. It counts them first, and then discards these and no others: all of
// them, or none if something changed meanwhile.
func discard(ctx context.Context, d *Desk, who *access.Identity, name string, f *api.Filter, expect int64, o *api.DiscardRequest) (api.Resolved, error) {
	why, err := reasonOf(o.Why, true)
	if err != nil {
		return api.Resolved{}, err
	}
	t, sel, err := chooseOpen(ctx, d, who, name, f)
	if err != nil {
		return api.Resolved{}, err
	}
	release, err := t.Alone(ctx)
	if err != nil {
		return api.Resolved{}, problemOn(ctx, d, t, err)
	}
	defer release()
	frozen, err := freeze(ctx, d, t)
	if err != nil {
		return api.Resolved{}, err
	}
	ledger := dlq.NewLedger(name, t.Ledger, d.cfg.Kafka...)
	counted, n := places{}, int64(0)
	for l, err := range ledger.Letters(ctx, sel.Whole(), frozen, dlq.OpenOnly) {
		if err != nil {
			return api.Resolved{}, problemOn(ctx, d, t, err) // what is not read is not counted
		}
		counted[l.Record.Partition] = append(counted[l.Record.Partition], l.Record.Offset)
		n++
	}
	if ledger.Missing() {
		return api.Resolved{}, failure.ProblemOf(t.NoLedger())
	}
	if n != expect {
		return api.Resolved{}, failure.NewProblem(api.WrongNumber, "the filter selects %d open letters of %s, and %d are expected: nothing was done; look again at what it selects%s", n, name, expect, sentence(sel.Problem()))
	}
	// A run that began, or an outcome that came, since the ledger was read.
	if err := ledger.Read(ctx, nil, nil); err != nil {
		return api.Resolved{}, problemOn(ctx, d, t, err)
	}
	if err := counted.stillOpen(name, ledger); err != nil {
		return api.Resolved{}, err
	}
	only := sel.Filter
	only.Match = counted.has
	done, err := ledger.Discard(ctx, only, frozen, dlq.DiscardOptions{By: who.Name, Why: why, Compensated: o.Compensated})
	Refreshed(ctx, d, t)
	if err != nil {
		err = problemOn(ctx, d, t, err)
		switch p, ok := errors.AsType[*failure.Problem](err); {
		case ok && done == n:
			p.Detail = fmt.Sprintf("all %d letters are recorded as discarded, but: %s", n, p.Detail)
		case ok && done > 0:
			p.Detail = fmt.Sprintf("%d of %d letters were discarded before the error; look at those that are still open, and discard them again: %s", done, n, p.Detail)
		}
		return api.Resolved{}, err
	}
	return api.Resolved{Letters: done}, nil
}

// sentence returns a text as a further part of a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// ReopenLetter withdraws that a letter was discarded, or that it was redriven to where no consumer
// can have its copy.
func ReopenLetter(ctx context.Context, d *Desk, who *access.Identity, in *request.Reopen) (api.Resolved, error) {
	name := in.Topic.Topic
	why, err := reasonOf(in.Body.Why, true)
	if err != nil {
		return api.Resolved{}, err
	}
	t, err := TopicFor(ctx, d, who, name, access.Operator)
	if err != nil {
		return api.Resolved{}, err
	}
	release, err := t.Alone(ctx)
	if err != nil {
		return api.Resolved{}, problemOn(ctx, d, t, err)
	}
	defer release()
	ledger := dlq.NewLedger(name, t.Ledger, d.cfg.Kafka...)
	n, waits, err := reopen(ctx, d.cfg, ledger, headers.Position{Topic: name, Partition: in.Partition, Offset: in.Offset}, dlq.ReopenOptions{By: who.Name, Why: why})
	switch {
	case err != nil:
		return api.Resolved{}, problemOn(ctx, d, t, err)
	case n == 0:
		if _, _, err := ledger.Find(ctx, in.Partition, in.Offset); err != nil {
			return api.Resolved{}, problemOn(ctx, d, t, err)
		}
		if waits.Topic != "" {
			return api.Resolved{}, failure.NewProblem(api.NotOpen, "letter %s/%d/%d was redriven, and a consumer can have its copy %s: its outcome is still to come", name, in.Partition, in.Offset, waits)
		}
		return api.Resolved{}, failure.NewProblem(api.NotOpen, "letter %s/%d/%d is not discarded: there is nothing to withdraw", name, in.Partition, in.Offset)
	}
	Refreshed(ctx, d, t)
	return api.Resolved{Letters: n}, nil
}

// reopen reopens a letter that is discarded, or pending with a lost copy. waits is the copy of one
// that is pending otherwise.
func reopen(ctx context.Context, cfg Config, ledger *dlq.Ledger, at headers.Position, o dlq.ReopenOptions) (reopened int64, waits headers.Position, err error) {
	f := dlq.Filter{Ranges: []dlq.Range{dlq.At(at.Partition, at.Offset)}}
	n, err := ledger.Reopen(ctx, f, dlq.Cursor{}, o)
	if err != nil || n > 0 || ledger.State(at.Partition, at.Offset) != dlq.Redriven {
		return n, waits, err
	}
	copies, err := redrive.FindLostCopies(ctx, redrive.Config{Kafka: cfg.Kafka, Naming: cfg.Naming}, ledger)
	if err != nil {
		return 0, waits, err
	}
	o.Pending = copies.Has
	n, err = ledger.Reopen(ctx, f, dlq.Cursor{}, o)
	waits, _ = copies.Of(at)
	return n, waits, err
}

// Refreshed brings the index up to what was just written, so that the sender sees it. An error is
// met by the next round.
func Refreshed(ctx context.Context, d *Desk, t *watch.Topic) {
	if err := t.Index.Refresh(ctx); err != nil {
		d.cfg.Log.Debug("siding: a dead-letter topic is read again later", "topic", t.DeadLetterTopic.Topic, "error", err)
	}
}
