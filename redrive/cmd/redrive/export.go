package main

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

func newExport(t *tool) *cobra.Command {
	var flags *selection.Flags
	var all bool
	cmd := &cobra.Command{
		Use:   "export TOPIC",
		Short: "Write open dead letters to stdout as JSON lines, byte for byte",
		Long: `Export writes the open dead letters, or all of them, to stdout. Each line is a JSON object with key, value and headers
in base64, whatever -o is. Import makes the same records of them.

Export changes nothing. To discard what was exported, give discard the same filters.`,
		Example: `  redrive export orders.dlq
  redrive export orders.dlq --all --until 2026-11-01
  redrive export orders.dlq --class decode | gzip`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := flags.Compile(t.now())
			return t.with(cmd.Context(), func(s *session) error { return export(cmd.Context(), s, args[0], sel, all) }, err)
		},
	}
	flags = addSelection(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "include resolved letters and copies")
	return cmd
}

func export(ctx context.Context, s *session, topic string, sel *selection.Selection, all bool) error {
	f, frozen, err := choose(ctx, s, topic, sel)
	if err != nil {
		return err
	}
	if s.Redact != nil {
		s.screen.Warn("export writes keys, values and headers byte for byte, for import, and hides nothing")
	}
	found, err := chosen(ctx, s, f, sel, frozen, all)
	if err != nil {
		return err
	}
	n, err := writeLetters(s.tool, s.screen.Data(), found)
	warnOfWhere(s.tool, sel)
	if err != nil {
		if n > 0 {
			s.screen.Say("%s of %s were exported before the error: the output is incomplete", letters(n), topic)
		}
		return readFailed(topic, err)
	}
	if n == 0 {
		s.screen.Say("%s", nothing(topic, all))
	}
	return nil
}

// writeLetters exports letters and shows their number meanwhile.
func writeLetters(t *tool, w io.Writer, found iter.Seq2[*dlq.Letter, error]) (int64, error) {
	var n int64
	return dlq.Export(w, func(yield func(*dlq.Letter, error) bool) {
		for l, err := range found {
			if n++; n%1000 == 0 {
				t.screen.Status("exported %s", fmt.Sprint(n))
			}
			if !yield(l, err) {
				return
			}
		}
	})
}
