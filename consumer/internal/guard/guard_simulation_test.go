package guard

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files again")

// machines are what the cells are played with.
var machines = []struct {
	name string
	make func(*world, *member) gate
}{
	{"none", func(*world, *member) gate { return unguarded{} }},
	{"today", newToday},
}

// isLong reports whether all cells are played, which takes minutes.
func isLong() bool { return os.Getenv("SIDING_LONG") != "" }

// table plays cells with some of the machines, and returns a line for each play. The first machine
// says what a record would have waited without any.
func table(t *testing.T, cells []cell, names ...string) string {
	t.Helper()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%-40s %-6s %7s %7s %6s %8s %6s %8s %7s %7s %8s %8s %6s\n",
		"cell", "plays", "records", "calls", "load", "wait s", "late", "cost s", "failed", "letters", "back s", "inverted", "undone")
	for _, c := range cells {
		var bare *world
		for _, m := range machines {
			if m.name != "none" && !slices.Contains(names, m.name) {
				continue
			}
			w := simulate(c, m.make)
			if bare == nil {
				bare = w
			}
			f := measured(w, bare)
			if slices.Contains(names, m.name) {
				fmt.Fprintf(&text, "%-40s %-6s %7d %7d %6.3f %8.1f %6d %8.1f %7d %7d %8.1f %8d %6d\n",
					c.name, m.name, f.records, f.calls, f.load, f.wait.Seconds(), f.late, f.cost.Seconds(), f.failed, f.dead, f.back.Seconds(), f.inverted, f.undone)
			}
		}
	}
	return text.String()
}

// compare compares a table with a golden file, or writes that.
func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	before := strings.Split(string(want), "\n")
	for _, line := range strings.Split(got, "\n") {
		if !slices.Contains(before, line) {
			t.Errorf("%s lacks this line; go test -run 'TestGuard_Rows' -update writes the file:\n%s", file, line)
		}
	}
}

// The situations of five trials, and what the breaker and the retry budget did there. With
// SIDING_LONG they last as long as they did then.
func TestGuard_RowsOfTheTrials(t *testing.T) {
	t.Parallel()
	name, long := "rows.txt", 10*minute
	if isLong() {
		name, long = "rows-long.txt", 30*minute
	}
	compare(t, name, table(t, rows(long), "today"))
}
