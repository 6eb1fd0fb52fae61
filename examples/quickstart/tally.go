package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// tally is the closing table. Produced is the sum of Handled, DeadLettered, Waiting and Lost.
type tally struct {
	Produced     int            `json:"produced"`     // acknowledged by the broker
	Handled      int            `json:"handled"`      // at the first attempt or after retries
	Retried      int            `json:"retried"`      // handled orders that needed retries
	ByRetries    map[int]int    `json:"byRetries"`    // handled orders by their retries, 0 included
	DeadLettered int            `json:"deadLettered"` //
	ByClass      map[string]int `json:"byClass"`      // dead-lettered orders by last error class
	Waiting      int            `json:"waiting"`      // neither yet; only after an interrupt
	Lost         int            `json:"lost"`         // in no topic, and never handled
	Duplicated   int            `json:"duplicated"`   // in more than one, or more than once
	Early        int            `json:"early"`        // calls before the order was due
	Latency      latency        `json:"healthyLatencyMs"`
	Interrupted  bool           `json:"interrupted,omitempty"`
	Problems     []string       `json:"problems,omitempty"` // contradictions, order by order
}

// latency is the time of healthy orders from produced to handled, in milliseconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// count compares the journal with what the topics hold.
func count(journal map[string]entry, f found) *tally {
	t := &tally{ByRetries: map[int]int{}, ByClass: map[string]int{}}
	var latencies []time.Duration
	for _, id := range slices.Sorted(maps.Keys(journal)) {
		e, letters := journal[id], f.dead[id]
		if !e.produced && !f.source[id] {
			continue // the broker never received it
		}
		t.Produced++
		t.Early += e.early
		retries := e.runs - 1 // each retry comes from a copy on a retry topic
		problem := func(format string, args ...any) {
			t.Problems = append(t.Problems, id+": "+fmt.Sprintf(format, args...))
		}
		if !f.source[id] {
			problem("acknowledged, but not on the source topic")
		}
		if e.early > 0 {
			problem("ran %d times before it was due", e.early)
		}
		if n := e.handled + len(letters); n > 1 {
			t.Duplicated++
			problem("handled %d times and dead-lettered %d times", e.handled, len(letters))
		}
		switch {
		case e.handled > 0:
			t.Handled++
			t.ByRetries[retries]++
			if retries > 0 {
				t.Retried++
			}
			if e.healthy {
				latencies = append(latencies, e.latency)
			}
		case len(letters) > 0:
			t.DeadLettered++
			t.ByClass[letters[0].class]++
			if l := letters[0]; !l.intact || l.attempts != e.runs {
				problem("its dead letter has %d attempts and the order's bytes: %t; the handler ran %d times", l.attempts, l.intact, e.runs)
			}
		case f.waiting[id]:
			t.Waiting++
			continue
		default:
			t.Lost++
			problem("lost: the handler ran %d times, and no topic has it any more", e.runs)
			continue
		}
		if f.parked[id] != retries {
			problem("%d copies on retry topics, %d runs of the handler", f.parked[id], e.runs)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.dead)) {
		if e, ok := journal[id]; !ok || e.at.IsZero() {
			t.Problems = append(t.Problems, fmt.Sprintf("a dead letter of %q, which was never produced", id))
		}
	}
	slices.Sort(latencies)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	t.Latency = latency{P50: ms(quantile(latencies, 0.5)), P99: ms(quantile(latencies, 0.99)), Max: ms(quantile(latencies, 1))}
	return t
}

// sound reports whether the numbers add up, as far as the run got.
func (t *tally) sound() bool {
	return len(t.Problems) == 0 && t.Lost == 0 && t.Duplicated == 0 && t.Early == 0 &&
		t.Handled+t.DeadLettered+t.Waiting == t.Produced && (t.Waiting == 0 || t.Interrupted)
}

// print writes the table as text.
func (t *tally) print(w io.Writer) {
	line := func(indent int, what string, n int) { fmt.Fprintf(w, "%*s%-*s %5d\n", indent, "", 44-indent, what, n) }
	fmt.Fprintln(w)
	line(2, "produced", t.Produced)
	for _, k := range slices.Sorted(maps.Keys(t.ByRetries)) {
		switch k {
		case 0:
			line(4, "handled the first time", t.ByRetries[k])
		case 1:
			line(4, "handled after 1 retry", t.ByRetries[k])
		default:
			line(4, fmt.Sprintf("handled after %d retries", k), t.ByRetries[k])
		}
	}
	line(4, "dead-lettered", t.DeadLettered)
	for _, class := range slices.Sorted(maps.Keys(t.ByClass)) {
		line(6, class, t.ByClass[class])
	}
	if t.Waiting > 0 {
		line(4, "still waiting", t.Waiting)
	}
	line(2, "lost", t.Lost)
	line(2, "duplicated", t.Duplicated)
	line(2, "run before they were due", t.Early)
	fmt.Fprintf(w, "\nHealthy orders took %.1f ms from produced to handled (median), %.1f ms (99th percentile).\n", t.Latency.P50, t.Latency.P99)
	for i, p := range t.Problems {
		if i == 10 {
			fmt.Fprintf(w, "… and %d more\n", len(t.Problems)-i)
			break
		}
		fmt.Fprintln(w, p)
	}
	sum := fmt.Sprintf("%d handled + %d dead-lettered", t.Handled, t.DeadLettered)
	if t.Waiting > 0 {
		sum += fmt.Sprintf(" + %d waiting", t.Waiting)
	}
	if t.sound() {
		fmt.Fprintf(w, "It adds up: %s = %d produced.\n", sum, t.Produced)
	} else {
		fmt.Fprintf(w, "It does NOT add up: %s, %d produced.\n", sum, t.Produced)
	}
}
