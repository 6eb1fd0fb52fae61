package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// figure is what was measured, beside its goal.
type figure struct {
	name        string
	value, goal float64
	unit        string
	besides     string // what else one may want to know
}

func (f figure) ok() bool { return f.value <= f.goal }

func (f figure) String() string {
	verdict := "ok"
	if !f.ok() {
		verdict = "MISSED"
	}
	return fmt.Sprintf("%-14s %8.1f %-10s goal ≤ %-4g %-6s %s", f.name, f.value, f.unit, f.goal, verdict, f.besides)
}

func main() {
	if os.Getenv(childBrokers) != "" {
		end(serveChild())
		return
	}
	letters := flag.Int("letters", 1_000_000, "`number` of letters")
	pages := flag.Int("pages", 200, "`number` of first pages")
	visits := flag.Int("visits", 100, "`number` of first pages that Chromium opens")
	rest := flag.Duration("rest", 30*time.Second, "`time` for which viewers look")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	end(run(ctx, *letters, *pages, *visits, *rest))
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const (
	// largeLetters are as many as fit into the broker's memory beside all else.
	largeLetters = 600
	// largeValue is close to the most that Kafka takes by default.
	largeValue = 900_000
)

// run measures all, and returns an error if a goal was missed.
func run(ctx context.Context, letters, pages, visits int, rest time.Duration) error {
	missed := 0
	show := func(all ...figure) {
		for _, f := range all {
			fmt.Fprintln(os.Stdout, f)
			if !f.ok() {
				missed++
			}
		}
	}
	one, err := newScene(ctx, 1, letters, 1)
	if err != nil {
		return err
	}
	defer one.end()
	f, err := one.firstPage(ctx, pages)
	if err != nil {
		return err
	}
	show(f)
	if f, err = one.usable(ctx, visits); err != nil {
		return err
	}
	show(f)
	one.end()
	many, err := newScene(ctx, 50, letters, 1)
	if err != nil {
		return err
	}
	defer many.end()
	all, err := many.atWork(ctx, pages, 100, rest)
	if err != nil {
		return err
	}
	show(all...)
	many.end()
	large, err := newScene(ctx, 2, min(letters, largeLetters), largeValue)
	if err != nil {
		return err
	}
	defer large.end()
	if f, err = large.largeValues(); err != nil {
		return err
	}
	show(f)
	if missed > 0 {
		return fmt.Errorf("%d goals were missed", missed)
	}
	return nil
}
