// House prints measures of the code base: how large and how entangled each package is, how its
// comments and tests keep the conventions of CONTRIBUTING.md, and which tests cost most. It fails
// where a measure exceeds its ceiling, a convention is broken, or a test costs too much.
//
//	go run ./internal/house [-C checkout] [-lower] [-race "flags of the race detector's build"]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run measures a checkout, prints the measures, and reports what exceeds a ceiling or breaks a
// convention.
func run(args []string, out, problems io.Writer) (code int) {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	flags.SetOutput(problems)
	dir := flags.String("C", ".", "measure the checkout in this directory")
	lower := flags.Bool("lower", false, "lower the ceilings to the measures")
	race := flags.String("race", "", "the flags that the recorded run under the race detector was built with, besides -race")
	if flags.Parse(args) != nil {
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintf(problems, "house: %v\n", err)
		return 2
	}
	got, rooms, broken, err := measure(*dir)
	if err != nil {
		return fail(err)
	}
	most, err := readCeilings(*dir)
	if err != nil {
		return fail(err)
	}
	debt, err := readDebt(*dir)
	if err != nil {
		return fail(err)
	}
	if *lower {
		most = most.lowered(got)
		if err := os.WriteFile(filepath.Join(*dir, ceilingsFile), []byte(most.String()), 0o666); err != nil {
			return fail(err)
		}
	}
	printRooms(out, rooms)
	printTree(out, got, most)
	ok := judge(got, broken, most, debt, problems)
	for _, name := range raised(*dir, most) {
		ok = false
		fmt.Fprintf(problems, "house: a ceiling was raised: %s; what has to exceed it for a while stands in %s\n", name, debtFile)
	}
	tooDear, err := tooDearTests(*dir, strings.Fields(*race), debt, out)
	if err != nil {
		return fail(err)
	}
	for _, test := range tooDear {
		ok = false
		fmt.Fprintf(problems, "house: %s\n", test)
	}
	if !ok {
		return 1
	}
	return 0
}

// printRooms prints a row for each package of several files.
func printRooms(out io.Writer, rooms []room) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "package\tfiles\tlines\tlargest cycle\tshare\treferences upward\tmost methods")
	slices.SortStableFunc(rooms, func(a, b room) int { return cmp.Compare(b.lines, a.lines) })
	for _, r := range rooms {
		if r.files < 2 {
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d lines, %d files\t%d %%\t%d of %d\t%d in %d files\n",
			r.folder, r.files, r.lines, r.cycleLines, r.cycleFiles, 100*r.cycleLines/max(r.lines, 1), r.upward, r.references, r.methods, r.filesOfMethods)
	}
	table.Flush()
	fmt.Fprintln(out)
}

// printTree prints the measures of the whole tree.
func printTree(out io.Writer, got measures, most ceilings) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "whole tree\tvalue\tceiling")
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if isOfPackage(name) {
			continue
		}
		ceiling := "-"
		if c, ok := most[name]; ok {
			ceiling = fmt.Sprint(c)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\n", name, got[name], ceiling)
	}
	table.Flush()
	fmt.Fprintln(out)
}

// shown bounds the places that are listed for one measure.
const shown = 20

// judge reports whether all measures are within their ceilings, and prints those that are not.
func judge(got measures, broken map[string][]string, most, debt ceilings, problems io.Writer) (ok bool) {
	ok = true
	for _, name := range slices.Sorted(maps.Keys(most)) {
		if _, measured := got[name]; !measured {
			ok = false
			fmt.Fprintf(problems, "house: there is a ceiling for %q, which is not measured: run go run ./internal/house -lower\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		ceiling, has := most.of(name)
		value := got[name]
		if !has || value <= ceiling {
			continue
		}
		if value <= debt[name] {
			fmt.Fprintf(problems, "house: debt: %s: %d, the ceiling is %d\n", name, value, ceiling)
			continue
		}
		ok = false
		fmt.Fprintf(problems, "house: %s: %d, the ceiling is %d\n", name, value, ceiling)
		places := broken[name]
		for _, place := range places[:min(len(places), shown)] {
			fmt.Fprintf(problems, "    %s\n", place)
		}
		if more := len(places) - shown; more > 0 {
			fmt.Fprintf(problems, "    and %d more\n", more)
		}
	}
	return ok
}
