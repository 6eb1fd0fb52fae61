package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTable_IsWrittenIntoThePage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, page)
	must(t, os.MkdirAll(filepath.Dir(file), 0o777))
	write := func(text string) {
		must(t, os.WriteFile(file, []byte(text), 0o666))
	}
	most := ceilings{"serve " + cycleLines: 900, "dlq " + cycleLines: 950, "serve " + mostMethods: 107}
	write("before\n" + begin + "old\n" + end + "behind\n")
	if stale, err := tableIsStale(dir, most); !stale || err != nil {
		t.Errorf("an old table is stale: %v, %v", stale, err)
	}
	must(t, writeTable(dir, most))
	text, _ := os.ReadFile(file)
	if got := string(text); !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "behind\n") ||
		!strings.Contains(got, "| `serve` | 900 | 4 | 107 | 4 |") || strings.Index(got, "`dlq`") > strings.Index(got, "`serve`") {
		t.Errorf("the page is\n%s", got)
	}
	if stale, err := tableIsStale(dir, most); stale || err != nil {
		t.Errorf("a table that was just written is stale: %v, %v", stale, err)
	}
	write("no marks\n")
	if err := writeTable(dir, most); err == nil {
		t.Error("a page without marks was written")
	}
}
