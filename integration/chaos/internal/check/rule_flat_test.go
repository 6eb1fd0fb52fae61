package check

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A process that grows slowly looks flat for a while. What it needs for more lanes is no growth.
func TestFlat_FindsGrowth(t *testing.T) {
	t.Parallel()
	var none [2]float64
	waiting := func(m float64) trace.Vitals {
		if m < 4 {
			return trace.Vitals{Goroutines: 60, Live: 3 << 20}
		}
		return trace.Vitals{Goroutines: 60, Live: 14 << 20}
	}
	for _, test := range []struct {
		name  string
		size  func(minute float64) trace.Vitals
		grows bool
		held  [2]float64 // the minutes in which a hold begins and ends
	}{
		{"nothing", func(float64) trace.Vitals { return trace.Vitals{Goroutines: 200, Live: 30 << 20} }, false, none},
		{"peaks", func(m float64) trace.Vitals {
			return trace.Vitals{Goroutines: 200 + 500*(int64(60*m)%30/28), Live: 30<<20 + 60<<20*(int64(60*m)%30/28)}
		}, false, none},
		{"the start", func(m float64) trace.Vitals {
			return trace.Vitals{Goroutines: min(300, 50+int64(m*600)), Live: min(40<<20, int64(m*(90<<20)))}
		}, false, none},
		{"a goroutine a second", func(m float64) trace.Vitals { return trace.Vitals{Goroutines: 200 + int64(60*m), Live: 30 << 20} }, true, none},
		{"a megabyte in ten seconds", func(m float64) trace.Vitals { return trace.Vitals{Goroutines: 200, Live: 20<<20 + int64(6*m*(1<<20))} }, true, none},
		{"records that wait in a hold", waiting, false, [2]float64{4, 10}},
		{"the same without a hold", waiting, true, none},
		{"a hold at first", waiting, false, [2]float64{0, 3}},
	} {
		ev := &evidence{journals: map[string]trace.Logged{}, loaded: int64(time.Hour)}
		is := trace.Logged{}
		for i, to := range []string{"held", "closed"} {
			is.Breakers = append(is.Breakers, trace.BreakerState{At: int64(test.held[i] * float64(time.Minute)), To: to})
		}
		for at := time.Duration(0); at < 6*time.Minute; at += 2 * time.Second {
			v := test.size(at.Minutes())
			v.At = int64(at)
			is.Vitals = append(is.Vitals, v)
		}
		ev.journals["a"] = is
		f := find(flat, ev)
		if got := len(f.broken) > 0; got != test.grows {
			t.Errorf("%s: grows %v, want %v: %v", test.name, got, test.grows, longest(ev))
		}
	}
}
