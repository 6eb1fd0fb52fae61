package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

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
	rig, err := newRig(ctx, b.name, b.memory, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := rig.close(); err == nil {
			err = cerr
		}
	}()
	stock, arms, err := prepare(ctx, rig, b)
	if err != nil {
		return nil, fmt.Errorf("writing the data: %w", err)
	}
	arms = slices.DeleteFunc(arms, func(a arm) bool {
		if len(o.arms) == 0 {
			return a.aside
		}
		return !slices.Contains(o.arms, a.name)
	})
	if o.before != "" {
		b.lines, arms = against(o.before, b.lines, arms)
	}
	n := cmp.Or(o.rounds, b.rounds, defaultRounds)
	var rounds []map[string]report
	for round := range n + 1 {
		if round == 0 && b.cold {
			continue
		}
		rig.last = round == n
		reports := make(map[string]report, len(arms))
		for _, a := range arms {
			rep, err := stock.turn(ctx, a, round)
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

// prepare writes what the arms of a bench share, and returns them.
func prepare(ctx context.Context, r *rig, b bench) (_ *stock, arms []arm, err error) {
	s := &stock{rig: r, topics: map[shape]data{}, copies: map[string]int64{}}
	if b.letters > 0 {
		if s.letters, err = writeLetters(ctx, r, "src", b.letters); err != nil {
			return nil, nil, err
		}
		s.topics[shape{}] = s.letters.data
		if err := writeDiscards(ctx, r, s.letters, b.settled); err != nil {
			return nil, nil, err
		}
	}
	for _, a := range b.arms {
		if _, is := s.topics[a.shape]; is || a.shape.records == 0 {
			continue
		}
		if s.topics[a.shape], err = r.fill(ctx, fmt.Sprintf("src-%d", a.shape.partitions), a.shape); err != nil {
			return nil, nil, err
		}
	}
	if arms = slices.Clone(b.arms); b.open != nil {
		arms, err = b.open(ctx, r)
	}
	return s, arms, err
}

// against makes a bench compare siding with the binary of an earlier commit, which takes the bare
// program's place in the turns and in the ratios.
func against(exe string, lines []line, arms []arm) (ratios []line, both []arm) {
	for _, a := range arms {
		if a.name == "siding" {
			both = append(both, a)
			a.name, a.exe = "before", exe
			both = append(both, a)
		}
	}
	for _, l := range lines {
		if l.unit == "x" && l.absolute != nil && len(both) > 0 {
			ratios = append(ratios, l.before())
		}
	}
	return ratios, both
}
