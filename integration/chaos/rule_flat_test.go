package chaos

import (
	"testing"
	"time"
)

// A process that grows slowly looks flat for a while. What it needs for more lanes is no growth.
func TestFlat_FindsGrowth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		size  func(minute float64) vitals
		grows bool
	}{
		{"nothing", func(float64) vitals { return vitals{goroutines: 200, live: 30 << 20} }, false},
		{"peaks", func(m float64) vitals {
			return vitals{goroutines: 200 + 500*(int64(60*m)%30/28), live: 30<<20 + 60<<20*(int64(60*m)%30/28)}
		}, false},
		{"the start", func(m float64) vitals {
			return vitals{goroutines: min(300, 50+int64(m*600)), live: min(40<<20, int64(m*(90<<20)))}
		}, false},
		{"a goroutine a second", func(m float64) vitals { return vitals{goroutines: 200 + int64(60*m), live: 30 << 20} }, true},
		{"a megabyte in ten seconds", func(m float64) vitals { return vitals{goroutines: 200, live: 20<<20 + int64(6*m*(1<<20))} }, true},
	} {
		ev := &evidence{told: map[string]told{}, loaded: int64(time.Hour)}
		is := told{}
		for at := time.Duration(0); at < 6*time.Minute; at += 2 * time.Second {
			v := test.size(at.Minutes())
			v.at = int64(at)
			is.vitals = append(is.vitals, v)
		}
		ev.told["a"] = is
		f := findings{rule: "flat", counted: map[string]int{}, excluded: map[string]int{}}
		flat(ev, &f)
		if got := len(f.broken) > 0; got != test.grows {
			t.Errorf("%s: grows %v, want %v: %v", test.name, got, test.grows, longest(ev))
		}
	}
}
