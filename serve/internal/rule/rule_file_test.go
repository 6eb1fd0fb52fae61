package rule

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The file of rules is gone, empty or half written: the rules before count, and the log says where
// it is wrong, once.
func TestRead_KeepsTheRulesWhileTheFileIsBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "rules.yaml")
		const both = "rules:\n  - {name: one, topics: '*', classes: [a]}\n  - {name: two, topics: '*', classes: [b]}\n"
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			now := time.Now().Add(time.Second) // as the next look finds it
			if err := os.Chtimes(name, now, now); err != nil {
				t.Fatal(err)
			}
		}
		write(both)
		var log bytes.Buffer
		f, err := Read(name, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		looks := func(what string, n, want int, says string) {
			t.Helper()
			log.Reset()
			for range n {
				time.Sleep(time.Second)
				if got := f.Get(); len(got) != want {
					t.Errorf("%s: %d rules, want %d", what, len(got), want)
				}
			}
			if logged := strings.Count(log.String(), "level=ERROR"); says != "" && (logged != 1 || !strings.Contains(log.String(), says)) || says == "" && logged > 0 {
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
		looks("there again", 2, 2, "")
		if rules := f.Get(); rules[0].Name != "uno" { // it has stayed the same
			t.Errorf("the rules are %+v", rules)
		}
		write("rules: []\n")
		looks("just written", 1, 2, "")
		looks("none", 2, 0, "")
	})
}
