package root_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// The pages of the server's console offer calls of the program. Their module does not know it, so a
// test there writes the file; here a shell splits each line, and the program runs it.
func TestRun_TakesWhatTheConsoleOffers(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	text, err := os.ReadFile("testdata/console.golden")
	if err != nil {
		t.Fatal(err)
	}
	b := roottest.Aftermath(t)
	tried := 0
	for line := range strings.Lines(string(text)) {
		words, isOurs := strings.CutPrefix(strings.TrimSpace(line), "redrive ")
		if !isOurs {
			continue
		}
		args, err := exec.CommandContext(t.Context(), shell, "-c", `printf '%s\0' `+words).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		tried++
		if got := b.Redrive(t, strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")...); got.Code == cli.ExitUsage || strings.HasPrefix(line, "redrive show") && got.Code != 0 {
			t.Errorf("%sends with %d: %s", line, got.Code, got.Stderr)
		}
	}
	if tried < 20 {
		t.Errorf("there are %d calls of the program", tried)
	}
}
