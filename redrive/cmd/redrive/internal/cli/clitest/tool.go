// Package clitest has what tests of the verbs share: a tool that writes into a buffer, a time, and
// golden files.
package clitest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// Update is whether the tests write golden files, and pages that quote commands, again.
var Update = flag.Bool("update", false, "write the golden files again")

// Noon is the time of the tests.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// NewTool returns a tool of a test, at noon, and the buffer to which it writes its words.
func NewTool(stdin io.Reader) (*cli.Tool, *bytes.Buffer) {
	words := new(bytes.Buffer)
	p := cli.Process{Stdin: stdin, Now: func() time.Time { return Noon }}
	return &cli.Tool{Process: p, Screen: output.NewScreen(io.Discard, words, func(string) string { return "" })}, words
}

// Golden checks a text against a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *Update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// A Fit is what a table that is too wide for its terminal keeps: the columns that one acts by.
type Fit struct {
	// Needs are the titles in a terminal of 80 columns.
	Needs []string
	// Always are the titles in one of 60 columns, too.
	Always []string
	// Shows is a text that is whole from 80 columns on, though there is something to be cut.
	Shows string
}

// Check prints a row on terminals of several widths, 26 hours and 7 minutes after noon.
func (f Fit) Check(t *testing.T, name string, row []output.Field) {
	t.Helper()
	for _, width := range []int{60, 80, 1000} {
		var data bytes.Buffer
		s := output.NewScreen(&data, io.Discard, func(string) string { return "" })
		s.Width, s.Look = width, output.Look{Now: func() time.Time { return Noon.Add(26*time.Hour + 7*time.Minute) }, Zone: time.UTC}
		list := s.List()
		if err := list.Row(row...); err != nil {
			t.Fatal(err)
		}
		if err := list.Close(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(data.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%s: %d wide, want %d at most: %s", name, n, width, line)
			}
		}
		if width > 60 && !strings.Contains(data.String(), f.Shows) {
			t.Errorf("%s at %d: %s is gone: %s", name, width, f.Shows, data.String())
		}
		title, _, _ := strings.Cut(data.String(), "\n")
		for _, column := range row {
			needed := width == 1000 && column.Title != "" || width == 80 && slices.Contains(f.Needs, column.Title) || slices.Contains(f.Always, column.Title)
			if needed && !strings.Contains(title, column.Title) {
				t.Errorf("%s at %d: %s is gone: %s", name, width, column.Title, title)
			}
		}
	}
}
