package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// A result is a line of bench.json. Ratio is the median of the rounds, or the worst of them if the
// goal is a promise; Min and Max are the smallest and the largest. Unit is "x" for a ratio, and
// names the quantity of a single figure.
type result struct {
	Name   string  `json:"name"`
	Broker string  `json:"broker"`
	Ratio  float64 `json:"ratio"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Goal   string  `json:"goal"`
	OK     bool    `json:"ok"`
	Unit   string  `json:"unit"`
	// Absolute has the figures that Ratio compares; none if Ratio is absolute itself.
	Absolute []absolute `json:"absolute,omitempty"`
}

// medians returns each program's median of the rounds.
func medians(l line, rounds []map[string]report) (all []absolute) {
	if l.absolute == nil {
		return nil
	}
	for i, a := range l.absolute(rounds[0]) {
		var figures []float64
		for _, r := range rounds {
			figures = append(figures, l.absolute(r)[i].Figure)
		}
		a.Figure = median(figures)
		all = append(all, a)
	}
	return all
}

// judge takes every line's figure inside each round, then the median of the
// rounds.
func judge(b bench, kind string, rounds []map[string]report) []result {
	var results []result
	for _, l := range b.lines {
		var figures []float64
		for _, r := range rounds {
			figures = append(figures, l.of(r))
		}
		m := median(figures)
		switch {
		case l.worst && l.goal.least:
			m = slices.Min(figures)
		case l.worst:
			m = slices.Max(figures)
		}
		results = append(results, result{
			Name:   l.name,
			Broker: kind,
			Ratio:  m,
			Min:    slices.Min(figures),
			Max:    slices.Max(figures),
			Goal:   l.goal.String(),
			OK:     l.goal.met(m),
			Unit:   l.unit,

			Absolute: medians(l, rounds),
		})
	}
	return results
}

// median returns the middle of the values, the upper one of two, and 0 for
// none.
func median[T cmp.Ordered](values []T) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func writeResults(path string, results []result) error {
	if len(results) == 0 {
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, r := range results {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("encoding result %s: %w", r.Name, err)
		}
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}

// printArms shows the median of each program's figures.
func printArms(w io.Writer, name, kind string, arms []arm, rounds []map[string]report) {
	fmt.Fprintf(w, "\n%s, %s, median of %d rounds\n", name, kind, len(rounds))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "program\trecords\ts\trecords/s\tCPU s/M\tmallocs/rec\tB/rec\theap MiB\tp50 ms\tp99 ms\t\n")
	for _, a := range arms {
		of := func(f func(report) float64) float64 {
			var vs []float64
			for _, r := range rounds {
				vs = append(vs, f(r[a.name]))
			}
			return median(vs)
		}
		fmt.Fprintf(tw, "%s\t%.0f\t%.3f\t%.0f\t%.3f\t%.4f\t%.0f\t%.1f\t%.2f\t%.2f\t\n", a.name,
			of(func(r report) float64 { return float64(r.Records) }),
			of(report.seconds),
			of(report.rate),
			of(report.cpuPerMillion),
			of(report.mallocsPerRecord),
			of(report.bytesPerRecord),
			of(report.heapMiB),
			of(func(r report) float64 { return r.P50 }),
			of(report.p99))
	}
	tw.Flush()
}

// printParked shows what the programs with parked records did, round by round.
func printParked(w io.Writer, arms []arm, rounds []map[string]report) {
	const mib = 1 << 20
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, a := range arms {
		for n, round := range rounds {
			r := round[a.name]
			if len(r.Late) == 0 {
				continue
			}
			if n == 0 {
				fmt.Fprint(tw, "round\tmost parked\tgiven up MiB\tread again MiB\tfilled MiB\tfetched MiB\tearly\tlateness by tier, p50 / p99 / max ms\t\n")
			}
			var late []string
			for _, l := range r.Late {
				if l.Records > 0 {
					late = append(late, fmt.Sprintf("%.1f / %.1f / %.1f", l.P50, l.P99, l.Max))
				}
			}
			fmt.Fprintf(tw, "%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%s\t\n", n+1, r.Parked, float64(r.Released)/mib, float64(r.Refetched)/mib,
				float64(r.Filled)/mib, float64(r.Fetched)/mib, r.early(), strings.Join(late, ", "))
		}
	}
	tw.Flush()
}

func printResults(w io.Writer, results []result) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range results {
		verdict := "ok"
		if !r.OK {
			verdict = "MISSED"
		}
		if r.Broker != kindKafka {
			verdict += " (only a real Kafka decides)"
		}
		fmt.Fprintf(tw, "%s\t%.4g %s\t(%.4g … %.4g)\tgoal %s\t%s\n", r.Name, r.Ratio, r.Unit, r.Min, r.Max, r.Goal, verdict)
	}
	tw.Flush()
}
