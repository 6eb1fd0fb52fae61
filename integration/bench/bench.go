package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Rounds after the warm-up: for most benches; for short ones, which other load on the machine
// disturbs; and for those that run by the clock, for half a minute or more.
const (
	defaultRounds = 5
	shortRounds   = 11
	longRounds    = 3
)

// A bench compares programs doing the same work.
type bench struct {
	name   string
	rounds int  // after the warm-up; 0: defaultRounds
	kafka  bool // the embedded broker cannot do what it needs
	// open writes the data and returns the programs, in the order in which
	// they take turns.
	open  func(context.Context, *rig) ([]arm, error)
	aside []string // programs that run only when asked for by name
	lines []line
}

// An arm is one program of a bench. Round 0 is the warm-up.
type arm struct {
	name string
	run  func(ctx context.Context, round int) (report, error)
}

// A line is one figure that a bench is held to.
type line struct {
	name string
	unit string // "x" for a ratio of two programs
	goal goal
	of   func(round map[string]report) float64
	// worst compares the worst round with the goal, not the median: a promise holds always.
	worst bool
	// absolute is what stands behind a ratio: the programs, the ratio's own first, and their
	// figure.
	absolute func(round map[string]report) []absolute
}

// A goal is a bound that is still good itself.
type goal struct {
	least bool // the figure must reach the limit, instead of staying under it
	limit float64
}

func atLeast(limit float64) goal { return goal{least: true, limit: limit} }
func atMost(limit float64) goal  { return goal{limit: limit} }

func (g goal) met(v float64) bool {
	if g.least {
		return v >= g.limit
	}
	return v <= g.limit
}

func (g goal) String() string {
	if g.least {
		return fmt.Sprintf(">= %g", g.limit)
	}
	return fmt.Sprintf("<= %g", g.limit)
}

// choose returns the named benches in their own order, or all of them.
func choose(all []bench, names []string) ([]bench, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []bench
	for _, b := range all {
		if i := slices.Index(names, b.name); i >= 0 {
			chosen = append(chosen, b)
			names = slices.Delete(slices.Clone(names), i, i+1)
		}
	}
	if len(names) > 0 {
		var known []string
		for _, b := range all {
			known = append(known, b.name)
		}
		return nil, fmt.Errorf("no bench named %s; there are %s", strings.Join(names, ", "), strings.Join(known, ", "))
	}
	return chosen, nil
}

type options struct {
	brokers  []string // empty: embedded
	arms     []string // empty: all that are compared, and ratios
	before   string   // binary of an earlier commit; empty: none
	rounds   int      // 0: the bench's own
	profiles string   // empty: none
	log      io.Writer
}

// runAll runs the benches one after the other. It returns the results so far even if a bench fails.
func runAll(ctx context.Context, benches []bench, o options) ([]result, error) {
	var results []result
	for _, b := range benches {
		if b.kafka && len(o.brokers) == 0 {
			fmt.Fprintf(o.log, "\n%s needs a real Kafka\n", b.name)
			continue
		}
		rs, err := runOne(ctx, b, o)
		results = append(results, rs...)
		if err != nil {
			return results, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return results, nil
}

// runOne gives each bench a fresh embedded broker: a long-lived one slows
// down as its heap grows.
func runOne(ctx context.Context, b bench, o options) (_ []result, err error) {
	rig, err := newRig(ctx, b.name, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := rig.close(); err == nil {
			err = cerr
		}
	}()
	arms, err := b.open(ctx, rig)
	if err != nil {
		return nil, fmt.Errorf("writing the data: %w", err)
	}
	arms = slices.DeleteFunc(arms, func(a arm) bool {
		if len(o.arms) == 0 {
			return slices.Contains(b.aside, a.name)
		}
		return !slices.Contains(o.arms, a.name)
	})
	if o.before != "" {
		b.lines, arms = rig.against(o.before, b.lines, arms)
	}
	n := cmp.Or(o.rounds, b.rounds, defaultRounds)
	var rounds []map[string]report
	for round := range n + 1 {
		rig.last = round == n
		reports := make(map[string]report, len(arms))
		for _, a := range arms {
			rep, err := a.run(ctx, round)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", a.name, round, err)
			}
			reports[a.name] = rep
		}
		if round > 0 {
			rounds = append(rounds, reports)
		}
	}
	printArms(o.log, b.name, rig.kind, arms, rounds)
	printParked(o.log, arms, rounds)
	if len(o.arms) > 0 {
		return nil, nil
	}
	results := judge(b, rig.kind, rounds)
	printResults(o.log, results)
	return results, nil
}
