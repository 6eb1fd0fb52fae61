package move

// The verb that writes open dead letters to stdout as JSON lines.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/payload"
)

// NewExport makes the verb export.
func NewExport(t *cli.Tool) *cobra.Command {
	var flags *selection.Flags
	var how exporting
	cmd := &cobra.Command{
		Use:   "export TOPIC",
		Short: "Write open dead letters to stdout as JSON lines, byte for byte",
		Long: `Export writes the open dead letters, or all of them, to stdout. Each line is a JSON object with key, value and headers
in base64, whatever -o is. Import makes the same records of them.

With --archive it writes them to a new file, or to an object of S3-compatible storage: s3://bucket/key. In a folder,
which ends in a slash, the archive's name is that of the topic and the time, and it is compressed, as is any whose name
ends in .gz. An archive appears when it is complete, and was read back.

With --decoded each object also has "decoded": key, value and headers as JSON or text, for jq, and by their schemas if
there is a --registry. Import takes such lines, too.

With --redact, or with --decoded where the profile redacts, the lines have only what may be shown, for people and for
tests: import refuses them, and consumertest's Import reads them. Any other export is byte for byte, and hides nothing.

--sample 3 takes the first three letters that it reads of each fingerprint, or of each class where letters have none.

Export changes nothing. To discard what was exported, give discard the same filters.`,
		Example: `  redrive export orders.dlq
  redrive export orders.dlq --all --until 2026-11-01
  redrive export orders.dlq --class decode | gzip
  redrive export orders.dlq --archive s3://letters/
  redrive export orders.dlq --sample 3 --redact customer.email > testdata/orders.jsonl
  redrive export orders.dlq --decoded | jq 'select(.decoded.value.amount > 100)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err1 := flags.Compile(t.Now())
			target, err2 := archiveTarget(how.archive)
			var err3 error
			if how.sample < 0 {
				err3 = fmt.Errorf("--sample: %d: letters of each fingerprint, at least 1, or 0 for all", how.sample)
			}
			how.redacted = how.decoded || slices.ContainsFunc([]string{"redact", "redact-header", "redact-pattern"}, cmd.Flags().Changed)
			return t.With(cmd.Context(), func(s *cli.Session) error { return export(cmd.Context(), s, args[0], sel, how, target) }, err1, err2, err3)
		},
	}
	flags = cli.AddSelection(cmd)
	cmd.Flags().BoolVar(&how.all, "all", false, "include resolved letters and copies")
	cmd.Flags().IntVar(&how.sample, "sample", 0, "take only the first `n` letters of each fingerprint; 0 takes all")
	cmd.Flags().BoolVar(&how.decoded, "decoded", false, "add key, value and headers as JSON or text")
	cmd.Flags().StringVar(&how.archive, "archive", "", "write a new `archive` and not to stdout: a file, a folder/, or s3://bucket/key")
	cli.CompleteFiles(cmd, "archive")
	return cmd
}

// exporting is the flags of export besides the filters.
type exporting struct {
	all, decoded bool
	redacted     bool // hides what is to be redacted
	sample       int  // letters of each fingerprint; 0 means all
	archive      string
}

// archiveTarget reads the location of an archive; nil without one.
func archiveTarget(location string) (*archive.Target, error) {
	if location == "" {
		return nil, nil
	}
	target, err := archive.Parse(location, archive.S3{})
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return target, nil
}

func export(ctx context.Context, s *cli.Session, topic string, sel *selection.Selection, how exporting, target *archive.Target) error {
	f, frozen, err := subject.Choose(ctx, s, topic, sel)
	if err != nil {
		return err
	}
	hide := s.Redact != nil && how.redacted
	switch {
	case hide:
		s.Screen.Warn("import refuses these lines, since parts of the letters are hidden")
	case s.Redact != nil:
		s.Screen.Warn("export writes keys, values and headers byte for byte, for import, and hides nothing: --redact on the command line hides, and so does --decoded")
	}
	found, err := subject.Chosen(ctx, s, f, sel, frozen, how.all)
	if err != nil {
		return err
	}
	if how.sample > 0 {
		found = sampled(found, how.sample)
	}
	var unread cli.Unread
	defer unread.Warn(s.Tool)
	read := func(l *dlq.Letter) *dlq.Letter {
		read, as := payload.Letter(ctx, s.Codec, l)
		unread.Add(l, as.Err())
		return read
	}
	if hide {
		found = redacted(ctx, s.Tool, found, &unread)
		read = func(l *dlq.Letter) *dlq.Letter { return l } // it has nothing but what may be shown
	}
	write := dlq.Export
	if how.decoded {
		write = func(w io.Writer, found iter.Seq2[*dlq.Letter, error]) (int64, error) {
			return exportDecoded(w, found, read)
		}
	}
	if target != nil {
		return exportTo(ctx, s, topic, sel, how, target, func(w io.Writer) (int64, error) { return write(w, counted(s.Tool, found)) })
	}
	n, err := write(s.Screen.Data(), counted(s.Tool, found))
	subject.WarnOfWhere(s.Tool, sel)
	if err != nil {
		if n > 0 {
			s.Screen.Print("%s of %s were exported before the error: the output is incomplete", cli.Letters(n), topic)
		}
		return subject.ReadFailed(topic, err)
	}
	if n == 0 {
		s.Screen.Print("%s", subject.Nothing(topic, how.all))
	}
	return nil
}

// errNothing ends an archive of no letters.
var errNothing = errors.New("there are no letters")

// exportTo exports letters to an archive.
func exportTo(ctx context.Context, s *cli.Session, topic string, sel *selection.Selection, how exporting, target *archive.Target, write func(io.Writer) (int64, error)) error {
	a, err := target.Write(ctx, topic, archive.NewID(s.Now()), func(w io.Writer) (int64, error) {
		n, err := write(w)
		if err == nil && n == 0 {
			return 0, errNothing
		}
		return n, subject.ReadFailed(topic, err)
	})
	subject.WarnOfWhere(s.Tool, sel)
	switch {
	case errors.Is(err, errNothing):
		s.Screen.Print("%s, so no archive was written", subject.Nothing(topic, how.all))
		return nil
	case err != nil:
		return err
	}
	return s.Screen.Object(
		output.NewField("topic", "TOPIC", topic), output.NewField("exported", "EXPORTED", a.Letters),
		output.NewField("archive", "ARCHIVE", a.Location), output.NewField("sha256", "SHA-256", a.SHA256),
	)
}

// sampled yields the first letters of each class and fingerprint, as many as most of each.
func sampled(found iter.Seq2[*dlq.Letter, error], most int) iter.Seq2[*dlq.Letter, error] {
	type kind struct{ class, fingerprint string }
	return func(yield func(*dlq.Letter, error) bool) {
		taken := map[kind]int{}
		for l, err := range found {
			if err == nil {
				k := kind{l.Meta.Class, l.Meta.Fingerprint}
				if taken[k] == most {
					continue
				}
				taken[k]++
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// redacted yields letters with the parts that may be shown.
func redacted(ctx context.Context, t *cli.Tool, found iter.Seq2[*dlq.Letter, error], unread *cli.Unread) iter.Seq2[*dlq.Letter, error] {
	return func(yield func(*dlq.Letter, error) bool) {
		for l, err := range found {
			if err == nil {
				var how payload.Reading
				l, _, how = cli.Read(ctx, t, l)
				unread.Add(l, how.Err())
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// exportDecoded is [dlq.Export], with lines that also have what the bytes mean: as read has them.
func exportDecoded(w io.Writer, found iter.Seq2[*dlq.Letter, error], read func(*dlq.Letter) *dlq.Letter) (n int64, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	var errs []error
	for l, err := range found {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		line, err := decodedLine(l, read(l).Record)
		if err == nil {
			_, err = out.Write(line)
		}
		if err != nil {
			return n, fmt.Errorf("export letter %s/%d/%d: %w", l.Record.Topic, l.Record.Partition, l.Record.Offset, err)
		}
		n++
	}
	if err := out.Flush(); err != nil {
		return n, fmt.Errorf("export: %w", err)
	}
	return n, errors.Join(errs...)
}

// decodedLine is a letter as a line of JSON, with what its record says.
func decodedLine(l *dlq.Letter, r *kgo.Record) ([]byte, error) {
	field := output.NewField
	key, keyEncoding := output.Text.Value(r.Key)
	value, encoding := output.AsJSON.Value(r.Value)
	added, err := output.JSONObject(
		field("key", "", key), field("keyEncoding", "", keyEncoding), field("value", "", value), field("encoding", "", encoding),
		field("headers", "", output.RowsOf(r.Headers, func(h kgo.RecordHeader) []output.Field { return output.HeaderFields(h.Key, h.Value, output.Text) })),
	)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	if _, err := dlq.Export(&raw, func(yield func(*dlq.Letter, error) bool) { yield(l, nil) }); err != nil {
		return nil, err
	}
	return slices.Concat(bytes.TrimSuffix(raw.Bytes(), []byte("}\n")), []byte(`,"decoded":`), added, []byte("}\n")), nil
}

// counted shows the number of letters that were taken.
func counted(t *cli.Tool, found iter.Seq2[*dlq.Letter, error]) iter.Seq2[*dlq.Letter, error] {
	return func(yield func(*dlq.Letter, error) bool) {
		n := 0
		for l, err := range found {
			if n++; n%1000 == 0 {
				t.Screen.Status("exported %s", fmt.Sprint(n))
			}
			if !yield(l, err) {
				return
			}
		}
	}
}
