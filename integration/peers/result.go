package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Kinds of broker, as results name them.
const (
	kindEmbedded = "kfake"
	kindKafka    = "kafka"
)

// A result is a program's cell of a workload, and a line of the results.
type result struct {
	Workload string `json:"workload"`
	Program  string `json:"program"`
	Broker   string `json:"broker"`
	// Failed says what was wrong in a round. There are no figures then.
	Failed string `json:"failed,omitempty"`
	Rate   figure `json:"records_per_second,omitzero"`
	CPU    figure `json:"cpu_us_per_record,omitzero"`
	// P99 and Healthy are of records that are offered at a pace: the latency of the healthy ones,
	// and how long after the first of them the last one was handled.
	P99     figure `json:"p99_ms,omitzero"`
	Healthy figure `json:"last_healthy_s,omitzero"`
}

// A figure has the rounds' median, the smallest and the largest.
type figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// String is the median, and the range of the rounds.
func (f figure) String() string {
	return fmt.Sprintf("%s (%s … %s)", number(f.Median), number(f.Min), number(f.Max))
}

// number has three digits, or those of a whole number in groups.
func number(v float64) string {
	if v < 1000 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	s := strconv.FormatFloat(rounded, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// judge makes a cell of a program's turns.
func judge(w workload, program string, tries []try) result {
	r := result{Workload: w.name, Program: program}
	for _, t := range tries {
		if t.err != nil {
			r.Failed = strings.ReplaceAll(t.err.Error(), "\n", "; ")
			return r
		}
	}
	r.Rate, r.CPU = over(tries, try.rate), over(tries, try.cpu)
	if w.job.Rate > 0 {
		r.P99 = over(tries, func(t try) float64 { return t.rep.P99 })
		r.Healthy = over(tries, func(t try) float64 { return t.rep.Healthy })
	}
	return r
}

func over(tries []try, of func(try) float64) figure {
	var values []float64
	for _, t := range tries {
		values = append(values, of(t))
	}
	slices.Sort(values)
	return figure{values[len(values)/2], values[0], values[len(values)-1]}
}

func writeResults(path string, results []result) error {
	var lines []byte
	for _, r := range results {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(path, lines, 0o644); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}
