package roottest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// Prints checks a command's exit code, and that it printed the given texts on stdout and on stderr.
// Where a text is empty, the command must have printed nothing.
func Prints(t *testing.T, got Result, code int, stdout, stderr string, about ...any) {
	t.Helper()
	lacks := func(text, want string) bool { return !strings.Contains(text, want) || want == "" && text != "" }
	if got.Code != code || lacks(got.Stdout, stdout) || lacks(got.Stderr, stderr) {
		t.Errorf("%q: %+v, want exit code %d, %q and %q", about, got, code, stdout, stderr)
	}
}

// PrintsGolden checks that a command is done and printed the text of the golden file, without a
// control character.
func PrintsGolden(t *testing.T, got Result, name string) {
	t.Helper()
	if got.Code != cli.ExitDone || got.Stderr != "" || strings.ContainsAny(got.Stdout, "\x1b\u009b") || !utf8.ValidString(got.Stdout) {
		t.Errorf("%s: %+v", name, got)
	}
	clitest.Golden(t, name, got.Stdout)
}

// Exactly checks a command's exit code, and that it printed these texts and no other.
func Exactly(t *testing.T, got Result, code int, stdout, stderr string, about ...any) {
	t.Helper()
	if want := (Result{stdout, stderr, code}); got != want {
		t.Errorf("%q: %+v, want %+v", about, got, want)
	}
}

// InOrder checks that texts come one after the other.
func InOrder(t *testing.T, all string, want ...string) {
	t.Helper()
	rest := all
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Errorf("it does not say %q where it should:\n%s", w, all)
			return
		}
		rest = after
	}
}

// Save writes a text to a file of the test, and returns its name.
func Save(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Places are the letters of a listing, sorted.
func Places(t *testing.T, r Result) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(r.Stdout) {
		var row struct{ Place string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		found = append(found, row.Place)
	}
	slices.Sort(found)
	return found
}

// Outcome is a run as -o json prints it.
type Outcome struct {
	Run, State, By, Owner                      string
	Why, Cause                                 *string
	Selected, Sent, Succeeded, Failed, Pending int64
	FailedByClass, Skipped                     map[string]int64
	Ended                                      *string
	Heartbeat, Started                         string
	Discarded, Unknown, Retrying               int64
	Rate                                       float64
}

// OutcomeOf reads a run that a command printed as JSON.
func OutcomeOf(t *testing.T, text string) (o Outcome) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// Hunter is a secret.
const Hunter = "hunter2-hunter2"

// Page asks for a page until it is there and fits all patterns, and returns it.
func Page(ctx context.Context, t *testing.T, address string, want ...*regexp.Regexp) string {
	t.Helper()
	for tick := time.Tick(50 * time.Millisecond); ; {
		text, err := get(ctx, address)
		if err == nil && !slices.ContainsFunc(want, func(w *regexp.Regexp) bool { return !w.MatchString(text) }) {
			return text
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s: %v, %v, want %v: %s", address, context.Cause(ctx), err, want, text)
			return text
		case <-tick:
		}
	}
}

func get(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(text), err
}
