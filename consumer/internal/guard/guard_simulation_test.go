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
	{"guard", newGuarded},
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
			if m.name == "guard" {
				for _, wrong := range c.judged(&f) {
					t.Errorf("%s: %s", c.name, wrong)
				}
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
			t.Errorf("%s lacks this line; go test -run 'TestGuard_(Rows|Cells)' -update writes the file:\n%s", file, line)
		}
	}
}

// judged says what is wrong with the figures of a cell that the guard played.
func (c *cell) judged(f *figures) (all []string) {
	no := func(is bool, what string) {
		if is {
			all = append(all, what)
		}
	}
	share, poison, mixed := 0.0, 0.0, len(c.troubles) > 1
	for _, t := range c.troubles {
		share = max(share, t.share)
		if t.to == 0 {
			poison = max(poison, t.share)
		}
	}
	no(f.unprobed > 0, "records overtook an earlier one, and were no probes")
	if c.blocks > 0 { // a long block in front looks like an outage
		return all
	}
	// What a slow handler holds, others wait for.
	slow := 4 * c.slow
	if share <= 0.9 {
		no(f.cost > second+slow, "a healthy record ended more than a second earlier without the guard")
		no(f.wait > 30*second+slow, "a healthy record waited for more than 30 s")
	}
	if share < 0.95 {
		// A burst may use what the one before has saved.
		no(f.load > 1.255+1.3/c.rate+float64(c.burst)/4000, "the load is more than a quarter above the records")
	}
	if poison < 0.9 { // the probes are few, and find poison with that probability
		no(f.back > 30*second+slow && poison <= 0.6 || f.back > 75*second+slow, "the source is held for long after the end")
	}
	if poison < defaults.Strain { // else the budget runs them later
		no(f.undone > 0, "records have not ended")
	}
	if share > 0.3 && !c.bare && c.troubles[0].outcome == Failed {
		no(float64(f.dead) > 0.005*float64(f.failed), "more than 0.5 % of the records that come back are dead letters")
	}
	if share == 1 && !mixed && c.burst == 0 && c.waiting == 0 && c.troubles[0].on == 0 && c.restarts == nil {
		no(f.dead > 0, "an outage makes dead letters")
		// A member pays for itself to find out.
		no(c.rate/float64(max(c.members, 1)) >= 20 && c.members < 10 && c.slow == 0 && c.troubles[0].to-c.troubles[0].from >= 10*minute && f.load > 0.05, "an outage has more than 5 % of the calls")
	}
	return all
}

// The situations of five trials. With SIDING_LONG, they last as long as they did then. What the
// breaker and the retry budget did that the guard has replaced is in rows-before.txt and
// rows-long-before.txt.
func TestGuard_RowsOfTheTrials(t *testing.T) {
	t.Parallel()
	name, long := "rows.txt", 5*minute
	if isLong() {
		name, long = "rows-long.txt", 30*minute
	}
	compare(t, name, table(t, rows(long), "guard"))
}

// Rates, partitions, members, orders, shares, flaps, bursts, slow handlers, restarts: a few of
// them, and all with SIDING_LONG.
func TestGuard_Cells(t *testing.T) {
	t.Parallel()
	all := grid()
	if !isLong() {
		few := slices.DeleteFunc(all, func(c cell) bool { return c.rate*c.lasts.Seconds()+float64(c.waiting) > 15000 })
		all = nil
		for i := 3; i < len(few); i += 37 {
			all = append(all, few[i])
		}
		compare(t, "cells.txt", table(t, all, "guard"))
		return
	}
	for _, o := range []order{byPartition, byKey, byNone} {
		t.Run(o.String(), func(t *testing.T) {
			t.Parallel()
			of := slices.DeleteFunc(slices.Clone(all), func(c cell) bool { return c.order != o })
			compare(t, "cells-long-"+o.String()+".txt", table(t, of, "guard"))
		})
	}
}

// docs/policies.md has some of the rows, as long as they were in the trials.
func TestGuard_PageHasItsRows(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(filepath.Join("testdata", "rows-long.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text := "| trouble | calls for a record | healthy ones wait | dead letters | back after |\n|---|---|---|---|---|\n"
	for _, of := range []struct{ row, says string }{
		{"5 outage 10 min", "all calls fail for 10 min"},
		{"2 55 % of tenants", "55 % of tenants, for 30 min"},
		{"7 60 % by chance", "60 % by chance, for 30 min"},
		{"8 flaps, 3 s and 3 s", "all for 3 s, none for 3 s, for 30 min"},
		{"10 99 % defects, 10 min", "99 % match no rule, for 10 min"},
		{"9 no tiers, 2 min down, 1 up", "without tiers: ten times 2 min"},
	} {
		_, line, ok := strings.Cut("\n"+string(file), "\n"+of.row+" ")
		if !ok {
			t.Fatalf("rows-long.txt lacks %s", of.row)
		}
		line, _, _ = strings.Cut(line, "\n")
		// guard, records, calls, load, wait, late, cost, failed, letters, back
		f := strings.Fields(line)
		text += fmt.Sprintf("| %s | %s | %s s | %s | %s s |\n", of.says, f[3], f[4], f[8], f[9])
	}
	page, err := os.ReadFile("../../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), text) {
		t.Errorf("docs/policies.md lacks\n%s", text)
	}
}
