package main

import (
	"testing"
	"time"
)

func TestFiguresAreATable(t *testing.T) {
	t.Parallel()
	results := []result{
		{Name: "healthy", Ratio: 0.951234, Min: 0.94, Max: 0.96, Goal: ">= 0.9", OK: true, Unit: "x", Absolute: []absolute{
			{"siding", 1_234_567, "records/s"}, {"bare", 999.6, "records/s"}, {"clean", 0.25049, "ms"}, {"poisoned", 123.4, "ms"},
		}},
		{Name: "delays-early", Ratio: 2, Max: 2, Goal: "<= 0", Unit: "records"},
	}
	block := figures(results, "4 CPUs", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	want := `

On 2026-11-21, 4 CPUs.

**1 of 2 goals were missed**: ` + "`delays-early`" + `.

| line | figure | smallest … largest round | goal | | absolute |
|---|---|---|---|---|---|
| healthy | 0.9512 x | 0.94 … 0.96 | >= 0.9 | ok | siding 1,230,000 records/s, bare 1,000 records/s, clean 0.25 ms, poisoned 123 ms |
| delays-early | 2 records | 0 … 2 | <= 0 | **missed** |  |

`
	if block != want {
		t.Errorf("got\n%s\nwant\n%s", block, want)
	}
}

// Whoever reads a ratio can see what it compares. Only what was read again is a ratio of one
// program's own figures.
func TestRatiosHaveAbsoluteFigures(t *testing.T) {
	t.Parallel()
	for _, b := range benches {
		for _, l := range b.lines {
			if ratio := l.unit == "x" && l.name != "delays-refetched"; ratio && l.absolute == nil {
				t.Errorf("%s is a ratio without absolute figures", l.name)
			}
		}
	}
}
