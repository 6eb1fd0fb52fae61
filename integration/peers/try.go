package main

import (
	"fmt"
	"io"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// A try is what came of one program's turn.
type try struct {
	records int
	rep     work.Report
	err     error
}

// print shows a turn while others are still to come.
func (t try) print(w io.Writer, workload, program string, round int) {
	if t.err != nil {
		fmt.Fprintf(w, "%s, round %d, %s: %v\n", workload, round, program, t.err)
		return
	}
	fmt.Fprintf(w, "%s, round %d, %s: %.0f records/s, %.2f µs of CPU for a record", workload, round, program, t.rate(), t.cpu())
	if t.rep.P99 > 0 {
		fmt.Fprintf(w, ", p99 %.2f ms, last healthy one after %.2f s", t.rep.P99, t.rep.Healthy)
	}
	fmt.Fprintln(w)
}

func (t try) rate() float64 { return float64(t.records) / t.rep.Seconds }
func (t try) cpu() float64  { return t.rep.CPU / float64(t.records) * 1e6 }
