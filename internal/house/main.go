// House prints measures of the code base: how large and how entangled it is, and how its comments
// and tests keep the conventions of CONTRIBUTING.md. It fails where a measure exceeds its ceiling
// or a convention is broken.
//
//	go run ./internal/house [-C checkout]
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run measures a checkout, prints the measures, and reports what exceeds a ceiling or breaks a
// convention.
func run(args []string, out, problems io.Writer) (code int) {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	flags.SetOutput(problems)
	dir := flags.String("C", ".", "measure the checkout in this directory")
	if flags.Parse(args) != nil {
		return 2
	}
	got, broken, err := measure(*dir)
	if err != nil {
		fmt.Fprintf(problems, "house: %v\n", err)
		return 2
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "measure\tvalue\tceiling")
	for _, name := range slices.Sorted(got.names()) {
		ceiling := "-"
		if c, ok := ceilings[name]; ok {
			ceiling = fmt.Sprint(c)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\n", name, got[name], ceiling)
	}
	table.Flush()
	if !judge(got, broken, ceilings, problems) {
		return 1
	}
	return 0
}

// shown bounds the places that are listed for one measure.
const shown = 20

// judge reports whether all measures are within their ceilings, and prints those that are not.
func judge(got measures, broken map[string][]string, ceilings map[string]int, problems io.Writer) (ok bool) {
	ok = true
	for _, name := range slices.Sorted(maps.Keys(ceilings)) {
		value, measured := got[name]
		switch {
		case !measured:
			ok = false
			fmt.Fprintf(problems, "house: there is a ceiling for %q, which is not measured\n", name)
		case value > ceilings[name]:
			ok = false
			fmt.Fprintf(problems, "house: %s: %d, the ceiling is %d\n", name, value, ceilings[name])
			places := broken[name]
			for _, place := range places[:min(len(places), shown)] {
				fmt.Fprintf(problems, "    %s\n", place)
			}
			if more := len(places) - shown; more > 0 {
				fmt.Fprintf(problems, "    and %d more\n", more)
			}
		}
	}
	return ok
}
