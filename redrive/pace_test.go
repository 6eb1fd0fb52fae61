package redrive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

func TestPace_IsKept(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for rate, window := range map[int]time.Duration{50: 20 * time.Second, 1000: 3 * time.Second} {
		virtual(t, fmt.Sprint(rate), func(t *testing.T, k *consumertest.Kafka) {
			n := int(window/time.Second)*rate + 2*rate
			letters(t, k, n, succeeding)
			r := redriver(t, k)
			o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Rate: float64(rate), Canary: -1, Ramp: -1, MaxLag: -1}, nil))
			succeeds(t, int64(n))(o, err)
			sent := written(t, k, "orders.retry.5s")
			inWindow := 0
			for i, at := range sent {
				if at.Sub(sent[0]) < window {
					inWindow++
				}
				burst := rate / 10
				if j := i + rate + burst; j < len(sent) && sent[j].Sub(at) < time.Second {
					t.Fatalf("records %d to %d were sent within %v", i, j, sent[j].Sub(at))
				}
			}
			if want := n - 2*rate; inWindow < want*99/100 || inWindow > want*101/100+rate/10 {
				t.Errorf("%d were sent in %v, want %d", inWindow, window, want)
			}
		})
	}
}

// written are the times at which the records of a topic were written.
func written(t *testing.T, k *consumertest.Kafka, topic string) (all []time.Time) {
	t.Helper()
	for _, r := range on(t, k, topic) {
		all = append(all, r.Timestamp)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// A short run is over before the ramp is, and takes longer than at the mean of its rate.
func TestDuration_CountsTheRamp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		letters int64
		pace    redrive.Pace
		want    time.Duration
	}{
		{100, redrive.Pace{Rate: 50, Ramp: -1}, 2 * time.Second},
		{15, redrive.Pace{Rate: 10, Ramp: 10 * time.Second}, 4768 * time.Millisecond},
		{55, redrive.Pace{Rate: 10, Ramp: 10 * time.Second}, 10 * time.Second},
		{155, redrive.Pace{Rate: 10, Ramp: 10 * time.Second}, 20 * time.Second},
		{1000, redrive.Pace{Rate: -1}, 0},
	} {
		p := redrive.Plan{Letters: c.letters}
		if got := p.Duration(c.pace).Round(time.Millisecond); got != c.want {
			t.Errorf("%d letters at %+v: %v, want %v", c.letters, c.pace, got, c.want)
		}
	}
}
