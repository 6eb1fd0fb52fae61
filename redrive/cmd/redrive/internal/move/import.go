package move

// The verb that writes the letters of an export into a dead-letter topic.

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/serve/archive"
)

// NewImport makes the verb import.
func NewImport(t *cli.Tool) *cobra.Command {
	var how dlq.ImportOptions
	var yes bool
	cmd := &cobra.Command{
		Use:   "import TOPIC ARCHIVE",
		Short: "Write the letters of an export into a dead-letter topic",
		Long: `Import writes the letters of a file that export or prune wrote, or the server, into the dead-letter topic TOPIC, as
new dead letters: key, value and headers byte for byte, each into the partition that it was in. The file may be
compressed by gzip, be an object s3://bucket/key, or a folder, of which all archives are imported.

Import checks the whole file first, and writes nothing of a file that is cut short or broken. If writing fails, a part
of the letters is in the topic, and the message has their number: import the file again. A letter that the topic still
holds counts once, however often it is imported, and keeps its state. That does not hold if siding did not write it.

All other imported letters are open, whatever became of them before: a run would redrive them even if they succeeded.
Import counts the letters for which the topic's ledger has an outcome, and asks you to type their number. It knows no
outcomes of another topic or cluster. An archive of prune holds resolved letters, so import only what you need.

Import is refused while a run on the topic is unfinished. A run that begins meanwhile may abort itself, since it takes
new dead letters for failures.`,
		Example: `  redrive import orders.dlq orders.jsonl
  redrive import orders.dlq archive.jsonl.gz --keep-timestamps
  redrive import orders.dlq s3://letters/orders.dlq/20261123T090000.000Z-1f3a9c04.jsonl.gz`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveDefault // files
			}
			return subject.CompleteTopic(t, false)(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := archive.Open(cmd.Context(), args[1], archive.S3{})
			if err == nil {
				defer func() { _ = file.Close() }() // it was only read
			}
			return t.With(cmd.Context(), func(s *cli.Session) error { return importLetters(cmd.Context(), s, args[0], file, how, yes) }, err)
		},
	}
	cmd.Flags().BoolVar(&how.KeepTimestamps, "keep-timestamps", false, "keep the letters' timestamps, where the topic allows that; retention goes by them")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func importLetters(ctx context.Context, s *cli.Session, topic string, file *archive.Reader, how dlq.ImportOptions, yes bool) error {
	f, err := subject.FindTopic(ctx, s, topic)
	if err != nil {
		return err
	}
	needs := []string{"WRITE"}
	if how.KeepTimestamps { // then dlq.Import reads the retention
		needs = append(needs, "DESCRIBE_CONFIGS")
	}
	ledger, err := subject.IdleLedger(ctx, s, f, subject.ToCount, needs, nil)
	if err != nil {
		return err
	}
	preview, err := ledger.PreviewImport(ctx, file, cli.Progress(s.Tool, "reading "+topic))
	if err != nil {
		return subject.ReadFailed(topic, err)
	}
	if n := reopened(preview); n > 0 && !yes && preview.Broken == nil {
		question := fmt.Sprintf("%s of %s had an outcome (%s) and will be open again, so a run would redrive them a second time", cli.Letters(n), file.Name(), cli.CountsText(preview.Reopened))
		if err := cli.Confirm(ctx, s.Tool, question, n); err != nil {
			return err
		}
		if err := subject.StillIdle(ctx, ledger); err != nil {
			return err
		}
	}
	s.Screen.Status("importing %s …", file.Name())
	n, err := dlq.Import(ctx, topic, file, how, s.Kafka...)
	if err != nil {
		if n > 0 {
			s.Screen.Print("%s of %s were imported before the error, and they stay. Import the file again: letters that siding wrote then count as copies, which no run redrives", cli.Letters(n), file.Name())
		}
		err = fmt.Errorf("%s: %w", file.Name(), err)
		if denied := cli.OnTopic("WRITE", topic, err); cli.IsA[*redrive.DeniedError](denied) {
			return denied
		}
		return err // it names the topic
	}
	return s.Screen.Object(
		output.NewField("topic", "TOPIC", topic),
		output.NewField("imported", "IMPORTED", n),
		output.NewField("reopened", "OPEN AGAIN", output.UnlessZero(reopened(preview))),
		output.NewField("copies", "COPIES", output.Explained(preview.Copies, ": the topic holds their letters, or the file has them twice")),
	)
}

// reopened is how many letters of a file are resolved and will be open.
func reopened(o dlq.ImportPreview) (n int64) {
	for _, of := range o.Reopened {
		n += of
	}
	return n
}
