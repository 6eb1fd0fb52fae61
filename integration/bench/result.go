package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// A result is a line of bench.json. Ratio is the median of the rounds, Min
// and Max the best and worst of them; Unit is "x" for a ratio of two
// programs and names the quantity where a figure stands for itself.
type result struct {
	Name   string  `json:"name"`
	Broker string  `json:"broker"`
	Ratio  float64 `json:"ratio"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Goal   string  `json:"goal"`
	OK     bool    `json:"ok"`
	Unit   string  `json:"unit"`
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
		results = append(results, result{
			Name:   l.name,
			Broker: kind,
			Ratio:  m,
			Min:    slices.Min(figures),
			Max:    slices.Max(figures),
			Goal:   l.goal.String(),
			OK:     l.goal.met(m),
			Unit:   l.unit,
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
			of(func(r report) float64 { return r.Seconds }),
			of(report.rate),
			of(report.cpuPerMillion),
			of(report.mallocsPerRecord),
			of(report.bytesPerRecord),
			of(func(r report) float64 { return float64(r.HeapInuse) / (1 << 20) }),
			of(func(r report) float64 { return r.P50 }),
			of(func(r report) float64 { return r.P99 }))
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
