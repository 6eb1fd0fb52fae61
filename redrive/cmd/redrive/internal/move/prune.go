package move

// The verb that deletes resolved dead letters, up to the first open one.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/serve/archive"
)

// A pruning is the flags of prune.
type pruning struct {
	*cli.Operator
	olderThan, archive string
	discarded          string
	maxAge             string
	keep               dlq.Retention
	yes, dryRun        bool

	// of these, once they are read
	before, notesBefore time.Time
	target              *archive.Target
}

// NewPrune makes the verb prune.
func NewPrune(t *cli.Tool) *cobra.Command {
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

With --max-age or --max-count prune keeps the letters within these limits. The stricter one counts, and the oldest
letters go first, by when they entered the topic. --open also deletes open and pending letters beyond the limits. The
server does the same by its configuration, by the clock.

With --older-than prune also deletes open and pending letters that were written before that time. With
--discarded-older-than prune also deletes the notes of records that consumers discarded before that time, which list
--discarded shows. It does not ask about notes.

With --archive it first writes all letters that it is going to delete to a file, as export does: byte for byte, with
nothing redacted. It reads the archive back and compares the SHA-256. If any of that fails, it deletes nothing. The
archive may be a new file, a folder that ends in a slash, or s3://bucket/key, also of S3-compatible storage
(AWS_ENDPOINT_URL_S3, AWS_REGION and the credentials of AWS's tools). Without an archive deleted letters are lost.

The ledger has who deleted how many letters, when, why, and where the archive is. --dry-run only counts.

Prune is refused while a run on the topic is unfinished. A run that begins while prune deletes counts the deleted
letters as expired, and does not send them.`,
		Example: `  redrive prune orders.dlq
  redrive prune orders.dlq --older-than 30d --archive orders.jsonl
  redrive prune orders.dlq --max-age 180d --max-count 1000000 --archive s3://letters/ --dry-run
  redrive prune orders.dlq --discarded-older-than 90d --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			wrong := p.compile(t.Now())
			return t.With(cmd.Context(), func(s *cli.Session) error { return p.prune(cmd.Context(), s, args[0]) }, wrong)
		},
	}
	cmd.Flags().StringVar(&p.olderThan, "older-than", "", "also delete open letters that were written before this `time`: 30d (ago), 2026-11-20, or RFC 3339")
	cmd.Flags().StringVar(&p.maxAge, "max-age", "", "keep letters that were written after this `time`: 180d (ago), 2026-11-20, or RFC 3339")
	cmd.Flags().Int64Var(&p.keep.MaxCount, "max-count", 0, "keep this `number` of letters, the newest of the topic")
	cmd.Flags().BoolVar(&p.keep.Open, "open", false, "with --max-age or --max-count: also delete letters that are open or have no outcome")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "only count what would be deleted")
	cmd.Flags().StringVar(&p.discarded, "discarded-older-than", "", "also delete notes of records that consumers discarded before this `time`")
	cmd.Flags().StringVar(&p.archive, "archive", "", "write the deleted letters to a new `archive`, which import reads: a file, a folder/, or s3://bucket/key")
	cmd.Flags().BoolVar(&p.yes, "yes", false, "do not ask for confirmation")
	cli.CompleteFiles(cmd, "archive")
	cli.Section(cmd, cli.SectionLedger, func(set *pflag.FlagSet) { p.Operator = cli.AddOperator(t, set) })
	return cmd
}

// compile reads the flags. Its error has every problem.
func (p *pruning) compile(now time.Time) error {
	var err1, err2, err3 error
	p.before, err1 = beforeNow("older-than", p.olderThan, now, "open letters")
	p.notesBefore, err2 = beforeNow("discarded-older-than", p.discarded, now, "notes")
	p.target, err3 = archiveTarget(p.archive)
	return errors.Join(err1, err2, err3, p.limits(now))
}

// limits completes the limits that the flags set, and checks them.
func (p *pruning) limits(now time.Time) error {
	after, err := beforeNow("max-age", p.maxAge, now, "letters")
	switch {
	case err != nil:
		return err
	case p.keep.MaxCount < 0:
		return fmt.Errorf("--max-count: %d: the number of letters that stay, at least 1", p.keep.MaxCount)
	case !after.IsZero():
		p.keep.MaxAge = now.Sub(after)
	}
	limited := p.keep.MaxAge > 0 || p.keep.MaxCount > 0
	switch {
	case p.keep.Open && !limited:
		return errors.New("--open needs --max-age or --max-count; --older-than deletes open letters too")
	case limited && p.olderThan != "":
		return errors.New("--older-than cannot be combined with --max-age and --max-count: with these, --open deletes open letters")
	}
	return nil
}

// find returns what can be deleted.
func (p *pruning) find(ctx context.Context, l *dlq.Ledger, now time.Time, progress func(read, total int64)) (*dlq.Prunable, error) {
	if p.keep.MaxAge > 0 || p.keep.MaxCount > 0 {
		return l.PrunableBy(ctx, p.keep, now, progress)
	}
	return l.Prunable(ctx, p.before, progress)
}

// beforeNow is the time of a flag; zero without it.
func beforeNow(flag, text string, now time.Time, things string) (time.Time, error) {
	at, err := selection.ParseTime(text, now)
	switch {
	case err != nil:
		return at, fmt.Errorf("--%s: %w", flag, err)
	case !at.Before(now) && text != "":
		return at, fmt.Errorf("--%s: %s is not in the past: all %s would be deleted", flag, text, things)
	}
	return at, nil
}

// pruneNotes deletes notes of discarded records, and returns how many; nil without the flag.
func pruneNotes(ctx context.Context, s *cli.Session, ledger *dlq.Ledger, before time.Time) (deleted any, err error) {
	if before.IsZero() {
		return nil, nil
	}
	s.Screen.Status("deleting notes of discarded records …")
	n, err := ledger.PruneDiscardNotes(ctx, before)
	return n, cli.OnTopic("WRITE", ledger.Name(), err)
}

// pruneQuestion is what would be deleted, and which of it an operator could miss.
func pruneQuestion(topic string, found *dlq.Prunable) string {
	question := fmt.Sprintf("%s of %s will be deleted", cli.Letters(found.Letters), topic)
	if found.Open > 0 {
		question += fmt.Sprintf(", %d of them open or without an outcome, the newest written at %s", found.Open, found.NewestOpen.UTC().Format(time.RFC3339))
	}
	if found.Discarded > 0 {
		question += fmt.Sprintf(", %d of them discarded or compensated, which reopen could still open", found.Discarded)
	}
	return question
}

// prune counts what can be deleted, and deletes it once the user agrees.
func (p *pruning) prune(ctx context.Context, s *cli.Session, topic string) error {
	f, err := subject.FindTopic(ctx, s, topic)
	if err != nil {
		return err
	}
	r, err := s.Redriver()
	if err != nil {
		return err
	}
	warnOfOutcomes := func() {}
	if !p.dryRun {
		warnOfOutcomes = subject.WriteOutcomes(ctx, s.Tool, r, topic)
	}
	ledger, err := subject.IdleLedger(ctx, s, f, subject.ToInspect, []string{"DELETE"}, []string{"WRITE"})
	if err != nil {
		return err
	}
	warnOfOutcomes()
	found, err := p.find(ctx, ledger, s.Now(), cli.Progress(s.Tool, "reading "+topic))
	switch {
	case err != nil:
		return subject.ReadFailed(topic, err)
	case p.dryRun:
		return showPrunable(s.Tool, topic, found)
	case len(found.Until) == 0:
		why := ""
		if p.keep.MaxAge > 0 || p.keep.MaxCount > 0 {
			why = ", or is within the limits"
		}
		s.Screen.Print("nothing of %s can be deleted: each partition is empty or begins with a letter that is open or has no outcome%s", topic, why)
		return p.end(ctx, s, ledger, found, nil)
	}
	if err := p.ask(ctx, s, topic, found); err != nil {
		return err
	}
	return p.delete(ctx, s, ledger, found)
}

// ask asks for the number of the letters that will be deleted, unless --yes is given.
func (p *pruning) ask(ctx context.Context, s *cli.Session, topic string, found *dlq.Prunable) error {
	if p.archive != "" && s.Redact != nil {
		s.Screen.Warn("the archive will have keys, values and headers byte for byte, for import: nothing of them is redacted")
	}
	if !p.yes {
		return cli.Confirm(ctx, s.Tool, pruneQuestion(topic, found), found.Letters)
	}
	if found.Open > 0 { // without the question that has it
		s.Screen.Print("%s", pruneQuestion(topic, found))
	}
	return nil
}

// delete archives letters if --archive is given, and deletes them.
func (p *pruning) delete(ctx context.Context, s *cli.Session, ledger *dlq.Ledger, found *dlq.Prunable) error {
	topic := ledger.Topic()
	var written any
	where := ""
	if p.target != nil {
		var err error
		if where, err = writeArchive(ctx, s, topic, found, p.target); err != nil {
			return err
		}
		written = where
	}
	if err := subject.StillIdle(ctx, ledger); err != nil {
		if where != "" {
			err = fmt.Errorf("%w; nothing was deleted, and the letters in %s are still in the topic", err, where)
		}
		return err
	}
	s.Screen.Status("deleting …")
	if err := ledger.Prune(ctx, found, dlq.PruneOptions{By: p.By, Why: p.Why, Archive: where}); err != nil {
		err = cli.OnTopic("DELETE", topic, err)
		if errors.Is(err, dlq.ErrChanged) {
			err = cli.Coded(cli.ExitRefused, err)
		}
		if where != "" {
			err = fmt.Errorf("%w; the archive %s exists and is complete: choose another name next time", err, where)
		}
		return err
	}
	return p.end(ctx, s, ledger, found, written)
}

// end deletes the notes that the user named, and shows what was deleted.
func (p *pruning) end(ctx context.Context, s *cli.Session, ledger *dlq.Ledger, found *dlq.Prunable, archive any) error {
	reportPending(s.Tool, ledger.Topic(), found)
	notes, err := pruneNotes(ctx, s, ledger, p.notesBefore)
	return errors.Join(showPruned(s.Tool, ledger.Topic(), found, archive, notes), err)
}

// reportPending reports the letters that keep the letters behind them in the topic.
func reportPending(t *cli.Tool, topic string, found *dlq.Prunable) {
	if found.Copies > 0 && len(found.Until) > 0 {
		t.Screen.Print("%s of %s: copies of resolved letters, without an entry in the ledger. Prune has recorded them, and the next prune deletes them", cli.Letters(found.Copies), topic)
	}
	if found.Pending == 0 {
		return
	}
	t.Screen.Print("%s of %s without an outcome yet, and all later letters of their partitions stay: redrive runs %s lists the runs, "+
		"status RUN reports what is known; --older-than deletes by age alone", cli.Letters(found.Pending), topic, topic)
}

// showPrunable shows what would be deleted.
func showPrunable(t *cli.Tool, topic string, p *dlq.Prunable) error {
	return t.Screen.Object(
		output.NewField("topic", "TOPIC", topic),
		output.NewField("wouldDelete", "WOULD DELETE", p.Letters),
		output.NewField("open", "OPEN", output.UnlessZero(p.Open)),
		output.NewField("discarded", "DISCARDED", output.UnlessZero(p.Discarded)),
		output.NewField("pending", "PENDING", output.UnlessZero(p.Pending)),
		output.NewField("held", "HELD", output.Explained(p.Held, ": open, without an outcome, or behind such a letter")),
	)
}

func showPruned(t *cli.Tool, topic string, p *dlq.Prunable, archive, notes any) error {
	return t.Screen.Object(
		output.NewField("topic", "TOPIC", topic),
		output.NewField("deleted", "DELETED", p.Letters),
		output.NewField("open", "OPEN", output.UnlessZero(p.Open)),
		output.NewField("pending", "PENDING", output.UnlessZero(p.Pending)),
		output.NewField("archive", "ARCHIVE", archive),
		output.NewField("discardNotes", "NOTES DELETED", notes),
	)
}

// writeArchive writes all letters that prune is going to delete to an archive, and returns where it
// is.
func writeArchive(ctx context.Context, s *cli.Session, topic string, p *dlq.Prunable, target *archive.Target) (string, error) {
	a, err := target.Write(ctx, topic, archive.NewID(s.Now()), func(w io.Writer) (int64, error) {
		n, err := dlq.Export(w, counted(s.Tool, dlq.Read(ctx, topic, dlq.Filter{}, dlq.Cursor{Topic: topic, End: p.Until}, s.Kafka...)))
		if err == nil && n < p.Letters {
			err = fmt.Errorf("retention deleted %d of %s meanwhile; run prune again", p.Letters-n, cli.Letters(p.Letters))
		}
		return n, subject.ReadFailed(topic, err)
	})
	if err != nil {
		return "", fmt.Errorf("nothing was deleted: %w", err)
	}
	return a.Location, nil
}
