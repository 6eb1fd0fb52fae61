package rule_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/rule"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) // a Monday

func TestSchedule_Decide(t *testing.T) {
	t.Parallel()
	night, err := rule.ParseTimes("22:00-04:00")
	if err != nil {
		t.Fatal(err)
	}
	quiet := rule.Facts{Open: 5, LastFailed: now.Add(-time.Hour)}
	with := func(change func(*rule.Facts)) rule.Facts {
		f := quiet
		change(&f)
		return f
	}
	open := rule.State{Opened: now.Add(-time.Minute), Until: now.Add(time.Minute), Why: "tax.TableMiss failed again"}
	over := rule.State{Opened: now.Add(-time.Hour), Until: now, Wait: time.Hour}
	for name, test := range map[string]struct {
		times []rule.Times
		state rule.State
		facts rule.Facts
		want  rule.Action
		why   string
	}{
		"quiet":             {nil, rule.State{}, quiet, rule.Redrive, "no letter has failed for 15m"},
		"failed just now":   {nil, rule.State{}, with(func(f *rule.Facts) { f.LastFailed = now.Add(-time.Minute) }), rule.Nothing, "the last failure was 1m ago, and has to be 15m ago"},
		"nothing open":      {nil, rule.State{}, with(func(f *rule.Facts) { f.Open = 0 }), rule.Nothing, "no open letter"},
		"another run":       {nil, rule.State{}, with(func(f *rule.Facts) { f.Unfinished = "r1" }), rule.Nothing, "run r1"},
		"held":              {[]rule.Times{night}, rule.State{}, with(func(f *rule.Facts) { f.Held, f.LastFailed = "group billing holds orders", now }), rule.Nothing, "group billing holds orders"},
		"manual":            {nil, rule.State{}, with(func(f *rule.Facts) { f.Manual = true }), rule.Nothing, "only operators"},
		"paused":            {nil, rule.State{}, with(func(f *rule.Facts) { f.Paused = true }), rule.Nothing, "paused"},
		"at the wrong time": {[]rule.Times{night}, rule.State{}, quiet, rule.Nothing, "none of the rule's times"},
		"open":              {nil, open, quiet, rule.Nothing, "tax.TableMiss failed again"},
		"open for long":     {nil, over, quiet, rule.Canary, "one letter is tried"},
		"open, and fails":   {nil, over, with(func(f *rule.Facts) { f.LastFailed = now }), rule.Nothing, "the last failure"},
	} {
		r := rule.Schedule{CoolDown: 15 * time.Minute, Times: test.times}
		if do, why := r.Decide(now, &test.state, test.facts); do != test.want || !strings.Contains(why, test.why) {
			t.Errorf("%s: %v, %q; want %v, %q", name, do, why, test.want, test.why)
		}
	}
}

// However runs end, an open circuit lets one letter through at a time, after waits that double up
// to their bound; and a run that succeeds closes it.
func TestSchedule_CircuitAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	r := rule.Schedule{CoolDown: time.Minute, Wait: 10 * time.Minute, MaxWait: time.Hour}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		at, s, failures := now, rule.State{}, 0
		for range 200 {
			at = at.Add(time.Duration(rnd.IntN(20)) * time.Minute)
			do, why := r.Decide(at, &s, rule.Facts{Open: 1, LastFailed: at.Add(-time.Hour)})
			wait := min(10*time.Minute<<min(max(failures-1, 0), 10), time.Hour)
			want := rule.Redrive
			if failures > 0 {
				if want = rule.Canary; at.Before(s.Opened.Add(wait)) {
					want = rule.Nothing
				}
			}
			if do != want {
				t.Fatalf("seed %d: %v (%s) after %d failures at %v, opened %v; want %v", seed, do, why, failures, at, s.Opened, want)
			}
			if do == rule.Nothing {
				continue
			}
			cause := ""
			if failures++; rnd.IntN(3) == 0 {
				failures = 0
			} else {
				cause = "it failed again"
			}
			s = r.Ended(at, s, cause)
		}
	}
}

func TestTimes_Has(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]bool{
		"Mon-Fri 08:00-18:00": {"Mon 08:00": true, "Mon 07:59": false, "Fri 17:59": true, "Fri 18:00": false, "Sat 12:00": false},
		"22:00-04:00":         {"Mon 22:00": true, "Tue 03:59": true, "Tue 04:00": false, "Mon 12:00": false},
		"Fri 22:00-04:00":     {"Fri 23:00": true, "Sat 03:00": true, "Fri 03:00": false, "Sat 23:00": false},
		"Sat,Sun":             {"Sat 00:00": true, "Sun 23:59": true, "Mon 00:00": false},
		"Sat-Mon 00:00-24:00": {"Sat 12:00": true, "Mon 23:59": true, "Tue 00:00": false, "Fri 23:59": false},
	} {
		times, err := rule.ParseTimes(text)
		if err != nil {
			t.Fatal(err)
		}
		for at, want := range want {
			day, clock, _ := strings.Cut(at, " ")
			moment, err := time.Parse("15:04", clock)
			if err != nil {
				t.Fatal(err)
			}
			for date := now; ; date = date.AddDate(0, 0, 1) {
				if date.Weekday().String()[:3] == day {
					moment = time.Date(date.Year(), date.Month(), date.Day(), moment.Hour(), moment.Minute(), 0, 0, time.UTC)
					break
				}
			}
			if got := times.Has(moment); got != want {
				t.Errorf("%q has %s: %v", text, at, got)
			}
		}
	}
	for _, wrong := range []string{"", "x", "Mon-", "08:00", "8-18", "Mon 25:00-26:00", "a b c", "Mon-Fry 08:00-09:00", "08:00-18:00 Mon"} {
		if _, err := rule.ParseTimes(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func FuzzParseTimes(f *testing.F) {
	for _, seed := range []string{"Mon-Fri 08:00-18:00", "22:00-04:00", "Sat,Sun", "-", ":", "Mon-Mon"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		if t, err := rule.ParseTimes(text); err == nil {
			t.Has(now)
		}
	})
}
