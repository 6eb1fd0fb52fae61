// Release prepares a release of all modules that users require, and proves that they work outside
// of this tree. `make release` and `make release-check` run it.
//
//	release [-C checkout] prepare v0.1.0   # two commits and the tags, here; pushes nothing
//	release [-C checkout] check            # a trial of the next release, in temporary folders
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns 1 for what failed or was refused, and 2 for a command line that it does not know.
func run(args []string, out, problems io.Writer) (code int) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(problems)
	dir := flags.String("C", ".", "the checkout of siding")
	cache := flags.String("cache", "", "a folder that check keeps for its next run; none if empty")
	if flags.Parse(args) != nil {
		return 2
	}
	var err error
	switch of := repository(*dir); {
	case flags.NArg() == 2 && flags.Arg(0) == "prepare":
		if err = admitReadme(of); err == nil {
			err = prepare(of, flags.Arg(1), time.Now(), out)
		}
	case flags.NArg() == 1 && flags.Arg(0) == "check":
		err = check(of, *cache, out)
	default:
		fmt.Fprintln(problems, "release: want `prepare VERSION`, as in `make release VERSION=v0.1.0`, or `check`")
		return 2
	}
	if err != nil {
		fmt.Fprintf(problems, "release: %v\n", err)
		return 1
	}
	return 0
}
