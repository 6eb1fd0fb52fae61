package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// A pruning is the flags of prune.
type pruning struct {
	olderThan, archive string
	discarded          string
	yes                bool
}

func newPrune(t *tool) *cobra.Command {
	var p pruning
	cmd := &cobra.Command{
		Use:   "prune TOPIC",
		Short: "Delete resolved dead letters, up to the first open one",
		Long: `Prune deletes resolved letters from the beginning of each partition, up to the first letter that is open or has no
outcome yet. Kafka deletes from the beginning only, so resolved letters behind such a letter stay. Prune first records
outcomes that became known after the runs ended. A copy without an entry in the ledger stays once more: prune records
it, and the next prune deletes it.

Prune counts the letters first and asks you to type their number. Without a terminal, as in a cron job, pass --yes. If
a letter has to stay when prune is about to delete, such as one that was reopened meanwhile, prune deletes nothing.

With --older-than prune also deletes open and pending letters that were written before that time. With
--discarded-older-than prune also deletes the notes of records that consumers discarded before that time, which list
--discarded shows. It does not ask about notes.

With --archive it first writes all letters that it is going to delete to a file, as export does: byte for byte, with
nothing redacted. If that fails, it deletes nothing. Without an archive deleted letters are lost.

Prune is refused while a run on the topic is unfinished. A run that begins while prune deletes counts the deleted
letters as expired, and does not send them.`,
		Example: `  redrive prune orders.dlq
  redrive prune orders.dlq --older-than 30d --archive orders.jsonl
  redrive prune orders.dlq --discarded-older-than 90d --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			before, err1 := beforeNow("older-than", p.olderThan, t.now(), "open letters")
			notes, err2 := beforeNow("discarded-older-than", p.discarded, t.now(), "notes")
			return t.with(cmd.Context(), func(s *session) error { return prune(cmd.Context(), s, args[0], before, notes, p) }, err1, err2)
		},
	}
	cmd.Flags().StringVar(&p.olderThan, "older-than", "", "also delete open letters that were written before this `time`: 30d (ago), 2026-11-20, or RFC 3339")
	cmd.Flags().StringVar(&p.discarded, "discarded-older-than", "", "also delete notes of records that consumers discarded before this `time`")
	cmd.Flags().StringVar(&p.archive, "archive", "", "write the deleted letters to a new `file`, which import reads")
	cmd.Flags().BoolVar(&p.yes, "yes", false, "do not ask for confirmation")
	offerFiles(cmd, "archive")
	return cmd
}

// beforeNow is the time of a flag; zero without it.
func beforeNow(flag, text string, now time.Time, what string) (time.Time, error) {
	at, err := selection.ParseTime(text, now)
	switch {
	case err != nil:
		return at, fmt.Errorf("--%s: %w", flag, err)
	case !at.Before(now) && text != "":
		return at, fmt.Errorf("--%s: %s is not in the past: all %s would be deleted", flag, text, what)
	}
	return at, nil
}

// pruneNotes deletes notes of discarded records, and returns how many; nil without the flag.
func pruneNotes(ctx context.Context, s *session, ledger *dlq.Ledger, before time.Time) (deleted any, err error) {
	if before.IsZero() {
		return nil, nil
	}
	s.screen.Status("deleting notes of discarded records …")
	n, err := ledger.PruneDiscardNotes(ctx, before)
	return n, onTopic("WRITE", ledger.Name(), err)
}

// pruneQuestion says what would be deleted, and which of it somebody could miss.
func pruneQuestion(topic string, found *dlq.Prunable) string {
	what := fmt.Sprintf("%s of %s will be deleted", letters(found.Letters), topic)
	if found.Open > 0 {
		what += fmt.Sprintf(", %d of them open or without an outcome, the newest written at %s", found.Open, found.NewestOpen.UTC().Format(time.RFC3339))
	}
	if found.Discarded > 0 {
		what += fmt.Sprintf(", %d of them discarded or compensated, which reopen could still open", found.Discarded)
	}
	return what
}

func prune(ctx context.Context, s *session, topic string, before, notesBefore time.Time, p pruning) error {
	f, err := findTopic(ctx, s, topic)
	if err != nil {
		return err
	}
	r, err := s.redriver()
	if err != nil {
		return err
	}
	unresolved := writeOutcomes(ctx, s.tool, r, topic)
	ledger, err := idleLedger(ctx, s, f, toInspect, []string{"DELETE"}, []string{"WRITE"})
	if err != nil {
		return err
	}
	unresolved()
	found, err := ledger.Prunable(ctx, before, progress(s.tool, "reading "+topic))
	switch {
	case err != nil:
		return readFailed(topic, err)
	case len(found.Until) == 0:
		s.screen.Say("nothing of %s can be deleted: each partition is empty or begins with a letter that is open or has no outcome", topic)
		reportPending(s.tool, topic, found)
		notes, err := pruneNotes(ctx, s, ledger, notesBefore)
		return errors.Join(showPruned(s.tool, topic, found, nil, notes), err)
	}
	if p.archive != "" && s.redact != nil {
		s.screen.Warn("the archive will have keys, values and headers byte for byte, for import: nothing of them is redacted")
	}
	if !p.yes {
		if err := confirm(ctx, s.tool, pruneQuestion(topic, found), found.Letters); err != nil {
			return err
		}
	} else if found.Open > 0 { // nobody saw the question
		s.screen.Say("%s", pruneQuestion(topic, found))
	}
	var archive any
	if p.archive != "" {
		if err := writeArchive(ctx, s, topic, found, p.archive); err != nil {
			return err
		}
		archive = p.archive
	}
	if err := stillIdle(ctx, ledger); err != nil {
		if p.archive != "" {
			err = fmt.Errorf("%w; nothing was deleted, and the letters in %s are still in the topic", err, p.archive)
		}
		return err
	}
	s.screen.Status("deleting …")
	err = ledger.Prune(ctx, found)
	if err != nil {
		err = onTopic("DELETE", topic, err)
		if errors.Is(err, dlq.ErrChanged) {
			err = coded(exitRefused, err)
		}
		if p.archive != "" {
			err = fmt.Errorf("%w; the archive %s exists and is complete: choose another name next time", err, p.archive)
		}
		return err
	}
	reportPending(s.tool, topic, found)
	notes, err := pruneNotes(ctx, s, ledger, notesBefore)
	return errors.Join(showPruned(s.tool, topic, found, archive, notes), err)
}

// reportPending reports the letters that keep the letters behind them in the topic.
func reportPending(t *tool, topic string, found *dlq.Prunable) {
	if found.Copies > 0 && len(found.Until) > 0 {
		t.screen.Say("%s of %s: copies of resolved letters, without an entry in the ledger. Prune has recorded them, and the next prune deletes them", letters(found.Copies), topic)
	}
	if found.Pending == 0 {
		return
	}
	t.screen.Say("%s of %s without an outcome yet, and all later letters of their partitions stay: redrive runs %s lists the runs, "+
		"status RUN reports what is known; --older-than deletes by age alone", letters(found.Pending), topic, topic)
}

func showPruned(t *tool, topic string, p *dlq.Prunable, archive, notes any) error {
	return t.screen.Object(
		output.NewField("topic", "TOPIC", topic),
		output.NewField("deleted", "DELETED", p.Letters),
		output.NewField("open", "OPEN", unlessZero(p.Open)),
		output.NewField("pending", "PENDING", unlessZero(p.Pending)),
		output.NewField("archive", "ARCHIVE", archive),
		output.NewField("discardNotes", "NOTES DELETED", notes),
	)
}

// writeArchive writes all letters that prune is going to delete to a new file. It removes a file
// that it could not complete.
func writeArchive(ctx context.Context, s *session, topic string, p *dlq.Prunable, name string) error {
	// an archive is never overwritten
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("nothing was deleted: archive: %s already exists and is never overwritten: choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("nothing was deleted: archive: %w", err)
	}
	n, err := writeLetters(s.tool, file, dlq.Read(ctx, topic, dlq.Filter{}, dlq.Cursor{Topic: topic, End: p.Until}, s.opts...))
	if err == nil && n < p.Letters {
		err = fmt.Errorf("retention deleted %d of %s meanwhile; run prune again", p.Letters-n, letters(p.Letters))
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("nothing was deleted: archive %s: %w", name, errors.Join(readFailed(topic, err), os.Remove(name)))
	}
	return nil
}
