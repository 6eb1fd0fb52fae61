// Command peers runs siding and other libraries side by side on one broker: sarama's consumer
// group, kafka-go, watermill, and bare franz-go.
//
//	go run . [-brokers host:port,…] [-rounds 3] [-scale 1]
//	         [-only healthy,dead,poison,keyed] [-programs siding,sarama,…]
//	         [-out peers.json] [-plots dir] [-doc ../../docs/performance.md]
//
// Each round runs each program once, in turn, in a process of its own. A table and the results have
// the median of the rounds, the smallest and the largest. CPU is getrusage of the program's
// process, without the broker's share. After each run the command checks that all records were
// handled, all offsets committed and all dead letters written: else the program's cell has the
// reason in place of figures, and the exit status is 1. docs/performance.md has the workloads and
// the settings.
//
// Without -brokers the broker is the embedded one, in a process of its own with its log on disk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sidingkafka/siding/integration/peers/internal/programs"
	"github.com/sidingkafka/siding/internal/measured"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == childFlag {
		os.Exit(child(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "peers:", err)
		return exitFailed
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begun := time.Now()
	c.log = stdout
	results, err := runAll(ctx, c.options)
	if len(results) > 0 {
		table := markdown(results)
		fmt.Fprintf(stdout, "\n%s\nin all %v\n", table, time.Since(begun).Round(time.Second))
		err = errors.Join(err, c.write(ctx, results, table, begun))
	}
	if err != nil {
		fmt.Fprintln(stderr, "peers:", err)
		return exitFailed
	}
	if slices.ContainsFunc(results, func(r result) bool { return r.Failed != "" }) {
		return exitLost
	}
	return exitOK
}

// A command is what its line says.
type command struct {
	options
	out, plots, doc string // empty: none
}

func parse(args []string, stderr io.Writer) (c command, err error) {
	set := flag.NewFlagSet("peers", flag.ContinueOnError)
	set.SetOutput(stderr)
	brokers := set.String("brokers", "", "addresses of a real Kafka, comma-separated (default an embedded broker)")
	only := set.String("only", "", "names of the workloads, comma-separated (default all)")
	which := set.String("programs", "", "names of the programs, comma-separated (default all)")
	set.IntVar(&c.rounds, "rounds", 3, "rounds after the warm-up")
	set.Float64Var(&c.scale, "scale", 1, "share of each workload's records, for a quick try")
	set.StringVar(&c.out, "out", "", "file for the results, one JSON object a line (default none)")
	set.StringVar(&c.plots, "plots", "", "folder for the plots (default none)")
	set.StringVar(&c.doc, "doc", "", "document to put the table and the plots into; for runs of all on a real Kafka")
	if err := set.Parse(args); err != nil {
		return c, err
	}
	c.brokers = split(*brokers)
	if c.workloads, err = choose(split(*only)); err != nil {
		return c, err
	}
	for _, p := range programs.All {
		if names := split(*which); len(names) == 0 || slices.Contains(names, p.Name) {
			c.programs = append(c.programs, p)
		}
	}
	switch {
	case len(c.programs) == 0:
		return c, fmt.Errorf("no program named %s", *which)
	case c.rounds < 1 || c.scale <= 0:
		return c, errors.New("-rounds and -scale begin above 0")
	case c.doc != "" && (*only != "" || *which != "" || *brokers == "" || c.scale != 1 || c.plots == ""):
		return c, errors.New("-doc needs -plots, and is for runs of all on a real Kafka: figures of several runs do not belong together")
	}
	return c, nil
}

// write writes the files that the line asks for.
func (c command) write(ctx context.Context, results []result, table string, begun time.Time) (err error) {
	if c.out != "" {
		err = writeResults(c.out, results)
	}
	if c.plots != "" {
		err = errors.Join(err, writePlots(c.plots, results))
	}
	if c.doc == "" || err != nil {
		return err
	}
	where, err := measured.Setting(ctx, c.brokers, "programs")
	if err != nil {
		return err
	}
	return writeDoc(c.doc, c.plots, fmt.Sprintf("On %s, in %d rounds, %s; %s.\n\n%s", begun.Format(time.DateOnly), c.rounds, where, libraries(), table))
}

// split cuts a comma-separated flag; an empty one has no parts.
func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
