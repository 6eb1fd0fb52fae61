package main

import (
	"fmt"
	"strings"
	"time"
)

// The lines between which a document has the figures of a run.
const (
	docBegin = "<!-- bench: begin, written by `go run ./bench -brokers … -doc …` -->"
	docEnd   = "<!-- bench: end -->"
)

// figures are the results as a table.
func figures(results []result, where string, at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nOn %s, %s.\n\n", at.Format(time.DateOnly), where)
	var missed []string
	for _, r := range results {
		if !r.OK {
			missed = append(missed, "`"+r.Name+"`")
		}
	}
	switch len(missed) {
	case 0:
		fmt.Fprintf(&b, "All %d goals were reached.\n", len(results))
	default:
		fmt.Fprintf(&b, "**%d of %d goals were missed**: %s.\n", len(missed), len(results), strings.Join(missed, ", "))
	}
	b.WriteString("\n| line | figure | smallest … largest round | goal | | absolute |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		verdict := "ok"
		if !r.OK {
			verdict = "**missed**"
		}
		var absolutes []string
		for _, a := range r.Absolute {
			absolutes = append(absolutes, a.String())
		}
		fmt.Fprintf(&b, "| %s | %.4g %s | %.4g … %.4g | %s | %s | %s |\n", r.Name, r.Ratio, r.Unit, r.Min, r.Max, r.Goal, verdict, strings.Join(absolutes, ", "))
	}
	b.WriteString("\n")
	return b.String()
}
