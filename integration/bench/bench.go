package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	name    string
	rounds  int  // after the warm-up; 0: defaultRounds
	cold    bool // there is no warm-up
	kafka   bool // the embedded broker cannot do what it needs
	memory  bool // the embedded broker keeps its log in memory: it opens two files a partition
	letters int  // dead letters that are written before, and
	settled int  // how many of them the ledger resolves
	// arms are the programs, in the order in which they take turns. The topics of their shapes are
	// written before.
	arms []arm
	// open writes what no shape describes, and returns the arms.
	open  func(context.Context, *rig) ([]arm, error)
	lines []line
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

// always makes the line a promise.
func (l line) always() line {
	l.worst = true
	return l
}

// before is the line with the earlier program in the bare one's place.
func (l line) before() line {
	of, absolutes := l.of, l.absolute
	inPlace := func(round map[string]report) map[string]report {
		return map[string]report{"siding": round["siding"], "bare": round["before"]}
	}
	l.name += "-before"
	l.of = func(round map[string]report) float64 { return of(inPlace(round)) }
	l.absolute = func(round map[string]report) []absolute {
		all := absolutes(inPlace(round))
		for i := range all {
			if all[i].Program == "bare" {
				all[i].Program = "before"
			}
		}
		return all
	}
	if l.goal.least {
		l.goal = atLeast(asBefore)
	} else {
		l.goal = atMost(1.02)
	}
	return l
}

// asBefore is how much of an earlier commit's rate siding keeps at least; its CPU and times may be
// 1.02.
const asBefore = 0.98

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

// An absolute is a figure of one program, the median of the rounds.
type absolute struct {
	Program string  `json:"program"`
	Figure  float64 `json:"figure"`
	Unit    string  `json:"unit"`
}

// String rounds to three digits, as in "siding 1,230,000 records/s".
func (a absolute) String() string {
	text := fmt.Sprintf("%.3g", a.Figure)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil && rounded >= 1000 {
		text = fmt.Sprintf("%.0f", rounded)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
	}
	return a.Program + " " + text + " " + a.Unit
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

// A quantity is what programs are measured by.
type quantity struct {
	unit string
	of   func(report) float64
}

var (
	speed    = quantity{"records/s", report.rate}
	cpuTime  = quantity{"µs CPU/record", report.cpuPerMillion}
	mallocs  = quantity{"mallocs", report.mallocsPerRecord}
	duration = quantity{"s", report.seconds}
	middle   = quantity{"ms", report.p50}
	tail     = quantity{"ms", report.p99}
	tooEarly = quantity{"records", report.early}
	heapUsed = quantity{"MiB", report.heapMiB}
)

// lateness is the 99th percentile of a tier's.
func lateness(tier int) quantity {
	return quantity{"ms", func(r report) float64 { return r.Late[tier].P99 }}
}

// versus compares the figures of two programs.
func (q quantity) versus(name string, goal goal, program, base string) line {
	of := func(round map[string]report) float64 { return q.of(round[program]) / q.of(round[base]) }
	return line{name: name, unit: "x", goal: goal, of: of, absolute: q.each(program, base)}
}

// surplus is what a program's figure has over the other one's.
func (q quantity) surplus(name, unit string, goal goal, program, base string) line {
	of := func(round map[string]report) float64 { return q.of(round[program]) - q.of(round[base]) }
	return line{name: name, unit: unit, goal: goal, of: of, absolute: q.each(program, base)}
}

// alone is a figure of one program by itself.
func (q quantity) alone(name string, goal goal, program string) line {
	of := func(round map[string]report) float64 { return q.of(round[program]) }
	return line{name: name, unit: q.unit, goal: goal, of: of}
}

// each is the same figure of several programs.
func (q quantity) each(programs ...string) func(map[string]report) []absolute {
	return func(round map[string]report) (all []absolute) {
		for _, p := range programs {
			all = append(all, absolute{Program: p, Figure: q.of(round[p]), Unit: q.unit})
		}
		return all
	}
}

// keptRates are the rates of the kept lanes, while others drain and before.
func keptRates(round map[string]report) []absolute {
	r := round["siding"]
	return []absolute{{"during", r.rate(), "records/s"}, {"before", r.Before, "records/s"}}
}
