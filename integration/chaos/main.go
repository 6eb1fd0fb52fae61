package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/child"
	"github.com/sidingkafka/siding/integration/chaos/internal/member"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
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

// How processes exit.
const (
	exitOK     = iota
	exitBroken // a promise is broken
	exitFailed // the run could not be made
)

// memberDefects and brokerDefects are filled by tests, which see that the checker finds them.
var (
	memberDefects = map[string]func(*consumer.Config){}
	brokerDefects = map[string]func(*kfake.Cluster){}
)

// Child must be the first call of a program that calls [Run], as [Main] does it: in a process that
// a run has started, it does that process's work and never returns. Elsewhere it returns at once.
// The Config must be the one that Run gets; it provides what cannot be handed to a process, such as
// the handler.
func Child(cfg Config) {
	child.Serve(map[string]child.Role{
		member.Role: func(job []byte, in *bufio.Reader) error {
			var j trace.Job
			if err := json.Unmarshal(job, &j); err != nil {
				return err
			}
			go child.EndWithParent(in)
			return member.Run(member.Settings{Handler: cfg.Handler, Kafka: cfg.Kafka, Change: func(c *consumer.Config) {
				if cfg.Consumer != nil {
					cfg.Consumer(c)
				}
				if inject := memberDefects[j.Defect]; inject != nil {
					inject(c)
				}
			}}, j)
		},
		brokers.Role: func(job []byte, in *bufio.Reader) error {
			var j brokers.Job
			if err := json.Unmarshal(job, &j); err != nil {
				return err
			}
			return brokers.Serve(j, in, os.Stdout, brokerDefects[j.Defect])
		},
	})
}
