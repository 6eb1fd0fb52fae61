package console

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

// words are what a shell could take for something else.
var shellWords = []string{
	"plain", "", " ", "a b", "it's", `"`, `\`, `\'`, "$HOME", "`id`", "$(id)", "!x", "a;b", "a|b", "a&b", "*", "~", "#x", "--x", "a\nb", "\t", "ä", "no rate for “N?”",
	"\u202ereversed", "\x1b[2J", "\xff\xfe", "a'\u200bb\\", "%s", "(x)", "{a,b}", "<x>", "a=b",
}

// A shell reads a line as the words that it was made of, whatever they contain, and a page shows no
// character in it that cannot be seen.
func TestShellLine_IsReadAsItsWords(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	line := shellLine(shellWords...)
	if strings.ContainsFunc(line, hides) {
		t.Errorf("the line hides something: %q", line)
	}
	got, err := exec.CommandContext(t.Context(), shell, "-c", `printf '%s\0' `+line).Output()
	if words := strings.Split(strings.TrimSuffix(string(got), "\x00"), "\x00"); err != nil || !slices.Equal(words, shellWords) {
		t.Errorf("%s is read as %q, %v", line, words, err)
	}
}

// The program takes what pages offer. These are in a file that a test of the program reads, which
// this module does not know. SIDING_UPDATE=1 writes it.
func TestListCommands_AreThoseThatTheProgramTakes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 7, 30, 0, time.UTC)
	var lines []string
	add := func(all []command) {
		for _, c := range all {
			lines = append(lines, c.Text)
		}
	}
	for _, query := range []string{
		"", "class=http.*&class=tax.TableMiss&fingerprint=3649751aadbf4e23", "group=billing%2C+eu&reason=terminal&since=6h", "since=2d&until=90m", "since=2026-11-22&until=2026-11-22T10:30",
		"offset=0:119&offset=1:7", "state=all", "state=expired", "state=discarded&group=it%27s", "where=value.amount+%3E+100+%26%26+message+contains+%22x%22",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parseFilter(q, now)
		if err != nil {
			t.Fatal(err)
		}
		add(listCommands("orders.dlq", &f))
	}
	add(letterCommands("orders.dlq", 0, 1))
	letters := int64(90)
	edit := api.Edit{SetHeaders: []api.SetHeader{{Key: "currency", Value: api.NewBytes{Text: "it's = EUR"}}}, UnsetHeaders: []string{"b3"}, Patch: []byte(`{"region":"NO"}`)}
	for _, in := range []api.RunRequest{
		{},
		{Filter: api.Filter{Class: []string{"http.503"}, EnteredUntil: now}, Expect: &letters, RunOptions: api.RunOptions{Why: "OPS-4711: they're up", Pace: api.Pace{Rate: 2.5, Canary: 3, RampMs: 1500, WindowMs: 60_000, Tolerate: 5}, MaxRedrives: 7, Target: api.Target{Topic: "orders"}}},
		{RunOptions: api.RunOptions{Pace: api.Pace{Rate: -1, Canary: -1, RampMs: -1, WindowMs: -1}, MaxRedrives: -1, Edit: edit}},
	} {
		add(planCommands("orders.dlq", &in))
	}
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.FromSlash("../../../redrive/cmd/redrive/internal/root/testdata/console.golden")
	if os.Getenv("SIDING_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || got != string(want) {
		t.Errorf("the commands are\n%s\nand not those of %s, %v", got, file, err)
	}
}

// A new value is too much for a flag, and a patch may be too much for a line.
func TestPlanCommands_AreShort(t *testing.T) {
	t.Parallel()
	names := func(all []command) (names string) {
		for _, c := range all {
			names += c.What + "; "
		}
		return names
	}
	value := api.RunRequest{RunOptions: api.RunOptions{Edit: api.Edit{Value: &api.NewBytes{Text: "x"}}}}
	if got := names(planCommands("orders.dlq", &value)); got != "with the HTTP API; " {
		t.Errorf("for a new value there are %q", got)
	}
	long := api.RunRequest{RunOptions: api.RunOptions{Edit: api.Edit{Patch: []byte(`{"a":"` + strings.Repeat("x", mostCommand) + `"}`)}}}
	if got := names(planCommands("orders.dlq", &long)); got != "" {
		t.Errorf("for a long patch there are %q", got)
	}
	if got, want := redriveLine("list", "-odd.dlq", "--all"), "redrive list --all -- -odd.dlq"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
}
