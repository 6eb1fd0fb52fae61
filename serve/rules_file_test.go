package serve

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The file of rules is gone, empty or half written: the rules before count, and the log says where
// it is wrong, once.
func TestRuleFile_KeepsItsRulesWhileItIsBroken(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "rules.yaml")
	const both = "rules:\n  - {name: one, topics: '*', classes: [a]}\n  - {name: two, topics: '*', classes: [b]}\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(both)
	var log bytes.Buffer
	f, err := readRules(name, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	looks := func(what string, n, want int, says string) {
		t.Helper()
		log.Reset()
		for range n {
			if got := f.get(); len(got) != want {
				t.Errorf("%s: %d rules, want %d", what, len(got), want)
			}
			f.since = f.since.Add(-time.Second) // which passes between two looks
		}
		if told := strings.Count(log.String(), "level=ERROR"); says != "" && (told != 1 || !strings.Contains(log.String(), says)) || says == "" && told > 0 {
			t.Errorf("%s: the log has %s", what, log.String())
		}
	}
	half, _, _ := strings.Cut(both, "  - {name: two") // right by itself
	write(half)
	looks("half written", 1, 2, "")
	write(both + "  - {name: three")
	looks("broken", 4, 2, "rules.yaml:4")
	write("")
	looks("empty", 4, 2, "rules: required")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	looks("gone", 4, 2, "no such file")
	write(strings.Replace(both, "one", "uno", 1))
	looks("there again", 1, 2, "")
	if f.get()[0].Name != "uno" { // it has stayed the same
		t.Errorf("the rules are %+v", f.rules)
	}
	write("rules: []\n")
	looks("just written", 1, 2, "")
	looks("none", 2, 0, "")
}

// Another file in its place counts, although it has the same time and size.
func TestRuleFile_SeesAnotherContentOfTheSameTimeAndSize(t *testing.T) {
	t.Parallel()
	name, now := filepath.Join(t.TempDir(), "rules.yaml"), time.Now()
	write := func(rule string) {
		t.Helper()
		if err := os.WriteFile(name, []byte("rules: [{name: "+rule+", topics: '*', classes: [a]}]"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, now, now); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	f, err := readRules(name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	write("two")
	f.get()
	f.since = f.since.Add(-time.Second) // which passes between two looks
	if got := f.get(); len(got) != 1 || got[0].Name != "two" {
		t.Errorf("the rules are %+v", got)
	}
}
