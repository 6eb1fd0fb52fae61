package cli_test

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

func TestConfirm_TakesTheCountOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed string
		want  string // none: go on
	}{
		{"40\n", ""},
		{" 40 \r\n", ""},
		{"40", ""},
		{"", "40 was not typed, nothing was done: --yes skips the question"},
		{"\n", "40 was not typed"},
		{"y\n", `"y" is not 40, nothing was done`},
		{"4\n0\n", `"4" is not 40`},
	} {
		tl, words := clitest.NewTool(strings.NewReader(c.typed))
		err := cli.Confirm(t.Context(), tl, "40 letters of orders.dlq will be discarded", 40)
		if c.want == "" && err != nil || c.want != "" && (cli.ExitCode(err) != cli.ExitRefused || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.typed, err, c.want)
		}
		if got, want := words.String(), "40 letters of orders.dlq will be discarded; type 40 to continue:\n"; got != want {
			t.Errorf("it asks %q, want %q", got, want)
		}
	}
}

// Asked whether to take a run over, an operator typed y, and was refused.
func TestAgree_TakesYForYes(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"y\n": "", "Y\n": "", "yes\n": "", " YES\n": "", "n\n": `"n" is not yes, nothing was done`, "no\n": `"no" is not yes`, "yess\n": "is not yes", "\n": "yes was not typed",
	} {
		tl, words := clitest.NewTool(strings.NewReader(typed))
		err := cli.Agree(t.Context(), tl, "it would lose the run")
		if want == "" && err != nil || want != "" && (cli.ExitCode(err) != cli.ExitRefused || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", typed, err, want)
		}
		if got, want := words.String(), "it would lose the run; type yes to continue:\n"; got != want {
			t.Errorf("it asks %q, want %q", got, want)
		}
	}
}
