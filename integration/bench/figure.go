package main

// ratio compares the siding program's figure with the bare one's.
func ratio(of func(report) float64) func(map[string]report) float64 {
	return quotient("siding", "bare", of)
}

// quotient compares the figures of two programs.
func quotient(program, base string, of func(report) float64) func(map[string]report) float64 {
	return func(round map[string]report) float64 { return of(round[program]) / of(round[base]) }
}

// surplus is what the siding program's figure has over the bare one's.
func surplus(of func(report) float64) func(map[string]report) float64 {
	return func(round map[string]report) float64 { return of(round["siding"]) - of(round["bare"]) }
}

// sidings is a figure of the siding program by itself.
func sidings(of func(report) float64) func(map[string]report) float64 { return figure("siding", of) }

// each is the same figure of several programs.
func each(unit string, of func(report) float64, programs ...string) func(map[string]report) []absolute {
	return func(round map[string]report) (all []absolute) {
		for _, p := range programs {
			all = append(all, absolute{Program: p, Figure: of(round[p]), Unit: unit})
		}
		return all
	}
}

func rates(programs ...string) func(map[string]report) []absolute {
	return each("records/s", report.rate, programs...)
}

func cpus(programs ...string) func(map[string]report) []absolute {
	return each("µs CPU/record", report.cpuPerMillion, programs...)
}

// figure is a figure of one program by itself.
func figure(program string, of func(report) float64) func(map[string]report) float64 {
	return func(round map[string]report) float64 { return of(round[program]) }
}

// late is the 99th percentile of a tier's lateness.
func late(tier int) func(map[string]report) float64 {
	return sidings(func(r report) float64 { return r.Late[tier].P99 })
}

// keptRates are the rates of the kept lanes, while others drain and before.
func keptRates(round map[string]report) []absolute {
	r := round["siding"]
	return []absolute{{"during", r.rate(), "records/s"}, {"before", r.Before, "records/s"}}
}
