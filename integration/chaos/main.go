package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Main is a program: it reads the flags -seed, -seeds, -duration, -rate, -broker, -poisons, -only,
// -dir, -results and -commit over cfg, makes a run, prints what it found, and returns the exit code
// for [os.Exit]: 0, 1 if a promise was broken, 2 if the run could not be made. With -seeds it makes
// so many runs of consecutive seeds, which share the duration, and returns 1 if any of them failed.
func Main(cfg Config) int {
	Child(cfg)
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of the schedule and the records; 0: one from the clock")
	seeds := flags.Int("seeds", 1, "number of runs, of consecutive seeds, that share the duration")
	flags.DurationVar(&cfg.Duration, "duration", cfg.Duration, "how long faults are injected, in all runs together; 0: 2m")
	flags.IntVar(&cfg.Rate, "rate", cfg.Rate, "records a second; 0: 2000")
	flags.StringVar(&cfg.Broker, "broker", cfg.Broker, "kfake, kafka or own")
	flags.IntVar(&cfg.Poisons, "poisons", cfg.Poisons, "records that kill their process; 0: 3, negative: none")
	only := flags.String("only", strings.Join(cfg.Only, ","), "names of faults, separated by commas: "+strings.Join(Faults(), ", "))
	flags.StringVar(&cfg.Dir, "dir", cfg.Dir, "folder for journals and logs")
	flags.StringVar(&cfg.Results, "results", cfg.Results, "file to which the run's line is appended")
	flags.StringVar(&cfg.Commit, "commit", cfg.Commit, "name of the code in that line")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return exitFailed
	}
	cfg.Only = nil
	if *only != "" {
		cfg.Only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *seeds < 1 {
		fmt.Fprintf(os.Stderr, "chaos: -seeds is %d: it must be at least 1\n", *seeds)
		return exitFailed
	}
	c := campaign{cfg: cfg.withDefaults(), seeds: *seeds, out: os.Stdout}
	return c.run(ctx)
}
