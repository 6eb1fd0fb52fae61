package main

import (
	"testing"
	"time"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, tt := range []struct {
		name  string
		times []time.Duration
		share float64
		want  time.Duration
	}{
		{"none", nil, 0.99, 0},
		{"one", []time.Duration{7}, 0.99, 7},
		{"median of two", []time.Duration{1, 2}, 0.5, 1},
		{"99th of a hundred", hundred, 0.99, 99},
		{"99th of 101", append(hundred[:100:100], 101), 0.99, 100},
		{"least", hundred, 0, 1},
		{"most", hundred, 1, 100},
	} {
		if got := percentile(tt.times, tt.share); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestStopwatchTakesTheFirstTimeOfEachRecord(t *testing.T) {
	t.Parallel()
	s := newStopwatch(5, 3)
	for _, n := range []struct {
		i int
		d time.Duration
	}{{0, 20 * time.Millisecond}, {4, -time.Millisecond}, {0, time.Hour}} {
		s.record(n.i, n.d)
		select {
		case <-s.done:
			t.Fatalf("done at record %d, before all have a time", n.i)
		default:
		}
	}
	s.record(2, 0)
	select {
	case <-s.done:
	default:
		t.Fatal("not done with all times")
	}
	got := s.spread(0, 5)
	want := spread{Records: 3, P50: 1e-6, P99: 20, Max: 20, Early: 1}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStopwatchOfNothingIsDone(t *testing.T) {
	t.Parallel()
	select {
	case <-newStopwatch(0, 0).done:
	default:
		t.Error("waits for no record")
	}
}
