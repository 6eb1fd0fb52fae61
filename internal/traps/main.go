// Traps lists the known faults of other consumers with the tests that guard against each. It fails
// if one has no test.
//
//	go run ./internal/traps
package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

func main() { os.Exit(run(os.DirFS("."), later, os.Stdout, os.Stderr)) }

// run prints the traps of a tree with their tests, and the problems.
func run(tree fs.FS, later map[int]string, out, problems io.Writer) (code int) {
	s, err := readTree(tree)
	if err != nil {
		fmt.Fprintf(problems, "traps: %v\n", err)
		return 2
	}
	s.judge(later)
	for n := 1; n < len(traps); n++ {
		fmt.Fprintf(out, "%2d  %s\n", n, traps[n])
		for _, t := range s.tests[n] {
			fmt.Fprintf(out, "    %v\n", t)
		}
		if what, ok := later[n]; ok {
			fmt.Fprintf(out, "    later, with %s\n", what)
		}
	}
	for _, p := range s.problems {
		fmt.Fprintf(problems, "traps: %s\n", p)
	}
	if len(s.problems) > 0 {
		return 1
	}
	return 0
}
