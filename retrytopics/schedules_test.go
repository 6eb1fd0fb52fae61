package retrytopics

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSchedules_AreLegal(t *testing.T) {
	t.Parallel()
	for _, delays := range [][]time.Duration{Default, Aggressive, Standard, Patient, Cautious} {
		mustSiblings(t, Naming{}, "orders", delays...)
	}
}

// The table above the schedules has their delays and totals.
func TestSchedules_AreInTheTableAboveThem(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("schedules.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, delays := range map[string][]time.Duration{
		"Default": Default, "Aggressive": Aggressive, "Standard": Standard, "Patient": Patient, "Cautious": Cautious,
	} {
		var total time.Duration
		for _, d := range delays {
			total += d
		}
		want := slices.Concat([]string{"//", name}, strings.Fields(spelled(delays)), []string{FormatDelay(total)})
		if !slices.ContainsFunc(strings.Split(string(code), "\n"), func(line string) bool {
			got := strings.Fields(line)
			return len(got) > len(want) && slices.Equal(got[:len(want)], want)
		}) {
			t.Errorf("schedules.go has no row %q", want)
		}
	}
}

func TestExponential_DoublesUpToTheLongest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		first, longest time.Duration
		n              int
		want           string
	}{
		{time.Minute, time.Hour, 4, "1m 2m 4m 8m"},
		{time.Minute, time.Hour, 7, "1m 2m 4m 8m 16m 32m 1h"},
		{time.Minute, time.Hour, 100, "1m 2m 4m 8m 16m 32m 1h"}, // no delay twice
		{15 * time.Second, 4 * time.Minute, 5, "15s 30s 1m 2m 4m"},
		{15 * time.Second, 4 * time.Minute, 9, "15s 30s 1m 2m 4m"},
		{time.Second, 5 * time.Second, 9, "1s 2s 4s 5s"},
		{time.Millisecond, 3 * time.Millisecond, 9, "1ms 2ms 3ms"},
		{time.Minute, time.Minute, 3, "1m"},
		{time.Minute, time.Hour, 1, "1m"},
		{time.Minute, time.Hour, 0, ""},
		{maxDelay, maxDelay, math.MaxInt, FormatDelay(maxDelay)},
	} {
		got := Exponential(test.first, test.longest, test.n)
		if spelled(got) != test.want || got == nil {
			t.Errorf("Exponential(%v, %v, %d) = %q, want %q", test.first, test.longest, test.n, spelled(got), test.want)
		}
		mustSiblings(t, Naming{}, "orders", got...)
	}
}

// In a literal nothing but the check of the siblings sees that arguments are bad.
func TestExponential_OfBadArgumentsIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		first, longest time.Duration
		n              int
		want           string // in the error
	}{
		{0, time.Hour, 3, "delay 0s is not positive"},
		{-time.Second, time.Hour, 3, "delay -1s is not positive"},
		{-time.Hour, -time.Second, math.MaxInt, "delay -1h0m0s is not positive"},
		{math.MinInt64, math.MaxInt64, math.MaxInt, "is not positive"},
		{0, time.Hour, 0, "delay 0s is not positive"},
		// Taken for each other
		{time.Hour, time.Minute, 3, "tier 2, 1m0s, is not longer than the one before it, 1h0m0s"},
		{time.Hour, time.Minute, 1, "tier 2, 1m0s, is not longer"},
		{time.Hour, 0, 3, "delay 0s is not positive"},
		{time.Minute, time.Hour, -1, "delay 0s is not positive"},
		{1500 * time.Microsecond, time.Hour, 3, "1.5ms is not a whole number of milliseconds"},
		{time.Second, 1500*time.Millisecond + 1, 3, "is not a whole number of milliseconds"},
		{time.Hour, math.MaxInt64, math.MaxInt, "is longer than"},
	} {
		_, err := Naming{}.Siblings("orders", "billing", Exponential(test.first, test.longest, test.n)...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Exponential(%v, %v, %d) is refused with %v, want %q", test.first, test.longest, test.n, err, test.want)
		}
	}
}

func spelled(delays []time.Duration) string {
	words := make([]string, len(delays))
	for i, d := range delays {
		words[i] = FormatDelay(d)
	}
	return strings.Join(words, " ")
}
