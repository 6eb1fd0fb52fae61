// Package clitest has what tests of the verbs share: a tool that writes into a buffer, a time, and
// golden files.
package clitest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

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
