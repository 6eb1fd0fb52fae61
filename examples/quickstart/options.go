package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// options are the values of the command line.
type options struct {
	brokers []string
	keep    bool
	json    bool
	during  time.Duration
}

const (
	shortest = time.Second
	longest  = 12 * time.Second // with the tiers' delays, a run takes less than half a minute
)

// parse reads the command line. It writes errors to stderr; flag.ErrHelp is none.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var brokers string
	fs := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, "usage: quickstart [flags]\n\n")
		fs.PrintDefaults()
	}
	fs.StringVar(&brokers, "brokers", "", "run on this cluster, `host:port,…`, instead of a broker inside the process")
	fs.BoolVar(&o.keep, "keep", false, "with -brokers: do not delete the topics and the group")
	fs.BoolVar(&o.json, "json", false, "print only the closing table, as JSON on stdout; the rest goes to stderr")
	fs.DurationVar(&o.during, "for", 8*time.Second, fmt.Sprintf("how long to produce orders, `%v to %v`", shortest, longest))
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	var all []error
	if fs.NArg() > 0 {
		all = append(all, fmt.Errorf("quickstart takes no arguments, only flags: %q", fs.Arg(0)))
	}
	for b := range strings.SplitSeq(brokers, ",") {
		if b = strings.TrimSpace(b); b != "" {
			o.brokers = append(o.brokers, b)
		}
	}
	if brokers != "" && len(o.brokers) == 0 {
		all = append(all, fmt.Errorf("-brokers %q names no broker", brokers))
	}
	if o.keep && len(o.brokers) == 0 {
		all = append(all, errors.New("-keep needs -brokers: the embedded broker ends with the process"))
	}
	if o.during < shortest || o.during > longest {
		all = append(all, fmt.Errorf("-for is %v, want %v to %v", o.during, shortest, longest))
	}
	for _, err := range all {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
	}
	return o, errors.Join(all...)
}
