// Command bench runs siding and bare franz-go side by side on one broker and reports the ratio of
// the two.
//
//	go run ./bench [-only name,…] [-brokers host:port,…] [-rounds n]
//	               [-out bench.json] [-doc ../docs/performance.md]
//
// Every bench runs its programs in turn (A B A B …), each in a process of its own. Their data was
// written before, or is offered at an even pace. The first round is a warm-up and does not count. A
// ratio is computed within a round, so that other load on the machine affects both sides. The
// report has the median of the rounds, the smallest and the largest. CPU is getrusage of the
// client's process, without the broker's share. docs/performance.md describes each bench and its
// goal.
//
// Without -brokers the broker is the embedded one, in a process of its own with its log on disk.
// Its figures are only shown. On a real Kafka the exit status is 1 if a figure misses its goal.
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

	"github.com/sidingkafka/siding/internal/measured"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == childFlag {
		os.Exit(child(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// Exit statuses of run.
const (
	exitOK     = 0
	exitMissed = 1 // a goal was missed on real Kafka
	exitFailed = 2 // a bench could not be run, or the command line is wrong
)

func run(args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	var (
		only     = set.String("only", "", "names of the benches to run, comma-separated (default all)")
		arms     = set.String("arms", "", "run these programs of a bench only, comma-separated; no ratio is taken")
		brokers  = set.String("brokers", "", "addresses of a real Kafka, comma-separated (default an embedded broker)")
		before   = set.String("before", "", "binary of this command as an earlier commit has it: siding is compared with that one's")
		rounds   = set.Int("rounds", 0, "rounds after the warm-up (default 5, 11 where one takes some seconds, 3 where 30 s or more)")
		out      = set.String("out", "bench.json", "file for the results, one JSON object a line")
		doc      = set.String("doc", "", "document to put the figures into; for runs of all benches on a real Kafka")
		profiles = set.String("profiles", "", "directory for a CPU profile of each program's last round")
	)
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitFailed
	}
	chosen, err := choose(benches, split(*only))
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	if *doc != "" && (*only != "" || *arms != "" || *before != "" || *brokers == "") {
		fmt.Fprintln(stderr, "bench: -doc is for all benches on a real Kafka: figures of several runs do not belong together")
		return exitFailed
	}
	begun := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	where := ""
	if *doc != "" {
		if where, err = measured.Setting(ctx, split(*brokers), "clients"); err != nil {
			fmt.Fprintln(stderr, "bench:", err)
			return exitFailed
		}
	}
	results, err := runAll(ctx, chosen, options{
		brokers:  split(*brokers),
		arms:     split(*arms),
		before:   *before,
		rounds:   *rounds,
		profiles: *profiles,
		log:      stdout,
	})
	fmt.Fprintf(stdout, "\nin all %v\n", time.Since(begun).Round(time.Second))
	err = errors.Join(err, writeResults(*out, results))
	if *doc != "" && err == nil {
		err = measured.Write(*doc, docBegin, docEnd, figures(results, where, begun))
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	if slices.ContainsFunc(results, func(r result) bool { return r.Broker == kindKafka && !r.OK }) {
		return exitMissed
	}
	return exitOK
}

// split cuts a comma-separated flag; an empty one has no parts.
func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
