package main

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
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

func newExport(t *tool) *cobra.Command {
	var flags *selection.Flags
	var how exporting
	cmd := &cobra.Command{
		Use:   "export TOPIC",
		Short: "Write open dead letters to stdout as JSON lines, byte for byte",
		Long: `Export writes the open dead letters, or all of them, to stdout. Each line is a JSON object with key, value and headers
in base64, whatever -o is. Import makes the same records of them.

With --decoded each object also has "decoded": key, value and headers as JSON or text, for jq. Import takes such lines,
too. If something is redacted, the lines have only that, and import refuses them: an export without --decoded is byte
for byte, and hides nothing.

Export changes nothing. To discard what was exported, give discard the same filters.`,
		Example: `  redrive export orders.dlq
  redrive export orders.dlq --all --until 2026-11-01
  redrive export orders.dlq --class decode | gzip
  redrive export orders.dlq --decoded | jq 'select(.decoded.value.amount > 100)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := flags.Compile(t.now())
			return t.with(cmd.Context(), func(s *session) error { return export(cmd.Context(), s, args[0], sel, how) }, err)
		},
	}
	flags = addSelection(cmd)
	cmd.Flags().BoolVar(&how.all, "all", false, "include resolved letters and copies")
	cmd.Flags().BoolVar(&how.decoded, "decoded", false, "add key, value and headers as JSON or text")
	return cmd
}

// exporting is the flags of export besides the filters.
type exporting struct{ all, decoded bool }

func export(ctx context.Context, s *session, topic string, sel *selection.Selection, how exporting) error {
	f, frozen, err := choose(ctx, s, topic, sel)
	if err != nil {
		return err
	}
	switch {
	case s.Redact != nil && how.decoded:
		s.screen.Warn("import refuses these lines, since parts of the letters are hidden")
	case s.Redact != nil:
		s.screen.Warn("export writes keys, values and headers byte for byte, for import, and hides nothing: --decoded hides what is to be redacted")
	}
	found, err := chosen(ctx, s, f, sel, frozen, how.all)
	if err != nil {
		return err
	}
	write := dlq.Export
	if how.decoded {
		write = s.exportDecoded
	}
	n, err := write(s.screen.Data(), counted(s.tool, found))
	warnOfWhere(s.tool, sel)
	if err != nil {
		if n > 0 {
			s.screen.Say("%s of %s were exported before the error: the output is incomplete", letters(n), topic)
		}
		return readFailed(topic, err)
	}
	if n == 0 {
		s.screen.Say("%s", nothing(topic, how.all))
	}
	return nil
}

// exportDecoded is [dlq.Export] whose lines also have what the bytes mean. Where something is
// redacted they have only that.
func (t *tool) exportDecoded(w io.Writer, found iter.Seq2[*dlq.Letter, error]) (n int64, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	var errs []error
	for l, err := range found {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		line, err := t.decodedLine(l)
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

// decodedLine is a letter as a line of JSON.
func (t *tool) decodedLine(l *dlq.Letter) ([]byte, error) {
	shown, _ := t.redact.Letter(l)
	r, field := shown.Record, output.NewField
	key, keyEncoding := output.Text.Value(r.Key)
	value, encoding := output.AsJSON.Value(r.Value)
	added, err := output.JSONObject(
		field("key", "", key), field("keyEncoding", "", keyEncoding), field("value", "", value), field("encoding", "", encoding),
		field("headers", "", output.RowsOf(r.Headers, func(h kgo.RecordHeader) []output.Field { return headerFields(h, output.Text) })),
	)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	if t.redact == nil {
		if _, err := dlq.Export(&raw, func(yield func(*dlq.Letter, error) bool) { yield(l, nil) }); err != nil {
			return nil, err
		}
	} else {
		line, err := output.JSONObject(
			field("v", "", 1), field("topic", "", r.Topic), field("partition", "", r.Partition), field("offset", "", r.Offset),
			field("timestamp", "", r.Timestamp.UnixMilli()), field("redacted", "", true),
		)
		if err != nil {
			return nil, err
		}
		raw.Write(append(line, '\n'))
	}
	return slices.Concat(bytes.TrimSuffix(raw.Bytes(), []byte("}\n")), []byte(`,"decoded":`), added, []byte("}\n")), nil
}

// writeLetters exports letters and shows their number meanwhile.
func writeLetters(t *tool, w io.Writer, found iter.Seq2[*dlq.Letter, error]) (int64, error) {
	return dlq.Export(w, counted(t, found))
}

// counted shows the number of letters that were taken.
func counted(t *tool, found iter.Seq2[*dlq.Letter, error]) iter.Seq2[*dlq.Letter, error] {
	return func(yield func(*dlq.Letter, error) bool) {
		n := 0
		for l, err := range found {
			if n++; n%1000 == 0 {
				t.screen.Status("exported %s", fmt.Sprint(n))
			}
			if !yield(l, err) {
				return
			}
		}
	}
}
