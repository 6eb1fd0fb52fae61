package main

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPaceIsEven(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_000)
	for _, tt := range []struct {
		rate, i int
		want    time.Duration
	}{
		{2_000, 0, 0},
		{2_000, 1, 500 * time.Microsecond},
		{2_000, 120_000, time.Minute},
		{3, 1, 333_333_333},
		{3, 3, time.Second},                              // errors of rounding do not add up
		{1, 3_000_000_000, 3_000_000_000 * time.Second},  // 95 years
		{5_000, 20_000_000_000, 4_000_000 * time.Second}, // i seconds alone would overflow
	} {
		if got := (pace{start, tt.rate}).at(tt.i).Sub(start); got != tt.want {
			t.Errorf("record %d at %d/s is due after %v, want %v", tt.i, tt.rate, got, tt.want)
		}
	}
}

func TestStampsSurviveTheValue(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 123_456_789)
	r := &kgo.Record{Value: stamped(77, at)}
	if got := stamp(r); !got.Equal(at) || index(r) != 77 || len(r.Value) != valueSize {
		t.Errorf("record %d of %d bytes is stamped %v; want 77, %d, %v", index(r), len(r.Value), got, valueSize, at)
	}
}

// A poison that hit one partition only, or came in bursts, would be another
// bench.
func TestPoisonIsSpreadEvenly(t *testing.T) {
	t.Parallel()
	const n, partitions, windows = 120_000, 8, 12
	var byPartition [partitions]int
	var byTime [windows]int
	total := 0
	for i := range n {
		if isPoison(i, 100) {
			byPartition[i%partitions]++
			byTime[i*windows/n]++
			total++
		}
		if isPoison(i, 0) {
			t.Fatalf("record %d fails where none should", i)
		}
	}
	if total != poisoned(job{Offered: n, Poison: 100}) || total < n/100*95/100 || total > n/100*105/100 {
		t.Errorf("%d of %d fail, want about 1 %%", total, n)
	}
	for _, counts := range [][]int{byPartition[:], byTime[:]} {
		for i, got := range counts {
			if want := total / len(counts); got < want*7/10 || got > want*13/10 {
				t.Errorf("part %d of %d has %d, want about %d", i, len(counts), got, want)
			}
		}
	}
}
