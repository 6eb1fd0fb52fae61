package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Run makes one run and returns what it found. The error says why it could not be made; a broken
// promise is none, see [Report.Broken].
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(Faults()); err != nil {
		return nil, err
	}
	own := cfg.Dir == ""
	if own {
		dir, err := os.MkdirTemp("", "siding-chaos-")
		if err != nil {
			return nil, err
		}
		cfg.Dir = dir
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	e, err := newExecution(cfg)
	if err != nil {
		return nil, err
	}
	rep, err := e.run(ctx)
	e.close() // before the folder is removed: the embedded broker writes as it ends
	if err != nil {
		return nil, fmt.Errorf("chaos: seed %d: %w (journals and logs are in %s)", cfg.Seed, err, cfg.Dir)
	}
	rep.Dir = cfg.Dir
	if cfg.Results != "" {
		if err := rep.append(cfg.Results); err != nil {
			return nil, err
		}
	}
	if own && len(rep.Broken) == 0 {
		rep.Dir = ""
		return rep, os.RemoveAll(cfg.Dir)
	}
	return rep, nil
}

// campaign is a number of runs, one after the other, each with the next seed and an equal part of
// the duration. It goes on after one that failed.
type campaign struct {
	cfg   Config
	seeds int
	out   io.Writer

	broken, failed []string // seeds
	records        int
}

// run returns the exit code.
func (c *campaign) run(ctx context.Context) int {
	first, each := c.cfg.Seed, c.cfg.Duration/time.Duration(c.seeds)
	for i := range c.seeds {
		cfg := c.cfg
		cfg.Seed, cfg.Duration = first+uint64(i), each
		if cfg.Dir != "" && c.seeds > 1 {
			cfg.Dir = filepath.Join(cfg.Dir, strconv.FormatUint(cfg.Seed, 10))
		}
		c.one(ctx, cfg)
		if ctx.Err() != nil {
			return exitFailed
		}
	}
	if c.seeds > 1 {
		fmt.Fprintf(c.out, "%d seeds from %d on, %v each: %d records; %d held, %d broken, %d could not be made\n",
			c.seeds, first, each, c.records, c.seeds-len(c.broken)-len(c.failed), len(c.broken), len(c.failed))
		fmt.Fprintf(c.out, "broken: %s; not made: %s\n", strings.Join(c.broken, ", "), strings.Join(c.failed, ", "))
	}
	if c.cfg.Results != "" {
		if err := printResults(c.out, c.cfg.Results); err != nil {
			fmt.Fprintln(c.out, "chaos: cannot sum the results:", err)
		}
	}
	switch {
	case len(c.broken) > 0, len(c.failed) > 0 && c.seeds > 1:
		return exitBroken
	case len(c.failed) > 0:
		return exitFailed
	}
	return exitOK
}

// one makes a run.
func (c *campaign) one(ctx context.Context, cfg Config) {
	rep, err := Run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(c.out, err)
		c.failed = append(c.failed, strconv.FormatUint(cfg.Seed, 10))
		if cfg.Results != "" && ctx.Err() == nil {
			rep = &Report{Commit: cfg.Commit, Seed: cfg.Seed, Broker: cfg.Broker, Verdict: "not made: " + err.Error()}
			if err := rep.append(cfg.Results); err != nil {
				fmt.Fprintln(c.out, err)
			}
		}
		return
	}
	rep.print(c.out)
	c.records += rep.Records
	if len(rep.Broken) > 0 {
		c.broken = append(c.broken, strconv.FormatUint(cfg.Seed, 10))
	}
}
