package main

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
