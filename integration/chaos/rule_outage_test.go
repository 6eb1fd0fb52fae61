package chaos

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Suspects that fail in an outage open no breaker, however long ago a process died. Nor do records
// in front of those that an owner before had finished. Others do.
func TestOutage_CountsNoRemnants(t *testing.T) {
	t.Parallel()
	lane := tp{"orders", 0}
	assigned := []laneChange{{int64(30 * time.Second), laneAssigned, lane}}
	for _, test := range []struct {
		name  string
		lanes []laneChange
		left  int64   // in front of the last run of the owner before
		ended verdict // of that run
		open  bool    // the breaker of that owner
		to    int64
		want  int
	}{
		{"suspects", nil, 0, verdictPassed, false, 500, 0},
		{"a few of them", nil, 0, verdictPassed, false, 100, 1},
		{"of the lane before", assigned, 0, verdictPassed, false, 500, 1},
		{"leftovers", assigned, 500, verdictPassed, false, 0, 0},
		{"a few of them", assigned, 100, verdictPassed, false, 0, 1},
		{"in front of a copy of the outage", assigned, 500, verdictOutage, false, 0, 0},
		{"in front of a probe that failed", assigned, 500, verdictOutage, true, 0, 1},
		{"in front of a probe that passed", assigned, 500, verdictPassed, true, 0, 0},
		{"in front of a run that was cut off", assigned, 500, verdictDrained, false, 0, 1},
	} {
		is := told{lanes: test.lanes, suspects: []suspects{{int64(time.Second), lane, 0, test.to}}}
		for offset := range int64(500) {
			at := int64(time.Minute) + offset
			is.runs = append(is.runs, &run{member: "a", topic: "orders", lane: lane, offset: offset, start: at, end: at + 1, verdict: verdictOutage})
		}
		before := told{runs: []*run{{member: "b", topic: "orders", lane: lane, offset: test.left, start: opens + 1, end: opens + 2, verdict: test.ended}}}
		if test.open {
			before.breakers = []breakerState{{to: "held"}}
		}
		ev := &evidence{
			members: map[string]*member{"a": {job: memberJob{Service: service{Topics: []string{"orders"}}}}},
			told:    map[string]told{"a": is, "b": before},
		}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		if ev.openingCost("a", outageOf{"billing", int64(time.Minute), int64(2 * time.Minute)}, &f); len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}

// A record whose attempts all failed before a breaker could open is no find. One that had the time,
// or failed on an open breaker, is.
func TestOutage_ExcusesOnlyWhatEndsBeforeTheBreakerOpens(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	for _, test := range []struct {
		name   string
		lasts  int64 // from the first attempt to the last
		opened int64 // when the breaker opened; 0 if it did not
		want   int
	}{
		{"short tiers", 4 * second, 0, 0},
		{"the breaker opens later", 4 * second, 65 * second, 0},
		{"tiers that last", 6 * second, 0, 1},
		{"on an open breaker", 4 * second, 62 * second, 1},
	} {
		r := &record{id: 7, origin: &kgo.Record{Topic: "orders"}}
		for attempt := range int64(3) {
			at := 60*second + attempt*test.lasts/2
			r.runs = append(r.runs, &run{member: "a", attempt: int(attempt) + 1, start: at, end: at + 1, verdict: verdictOutage})
		}
		is := told{}
		if test.opened > 0 {
			is.breakers = []breakerState{{at: test.opened, to: "held"}}
		}
		ev := &evidence{members: map[string]*member{"a": {}}, told: map[string]told{"a": is}}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		ev.deadInOutage(&served{}, r, &copied{rec: &kgo.Record{Topic: "orders.dlq"}}, &f)
		if len(f.broken) != test.want || test.want == 0 && f.excluded["dead-lettered in an outage, before the breaker had opened"] != 1 {
			t.Errorf("%s: found %v, want %d; excluded %v", test.name, f.broken, test.want, f.excluded)
		}
	}
}

// A copy of what failed on an open breaker is one of a probe, if the breaker has had the time for a
// first one.
func TestOutage_FindsProbesThatCost(t *testing.T) {
	t.Parallel()
	opened := int64(time.Minute)
	for after, want := range map[time.Duration]int{-time.Second: 0, 113 * time.Millisecond: 0, time.Second: 1} {
		x := &run{member: "a", attempt: 3, start: opened + int64(after), verdict: verdictOutage}
		c := &copied{rec: &kgo.Record{Topic: "orders.retry.4s"}, meta: headers.Meta{Class: classOutage, Attempts: 3}}
		ev := &evidence{told: map[string]told{"a": {breakers: []breakerState{{at: opened, to: "held"}}}}}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		ev.probeCost(&record{id: 7, origin: &kgo.Record{Topic: "orders"}, runs: []*run{x}}, c, &f)
		if len(f.broken) != want {
			t.Errorf("%v after it opened: found %v, want %d", after, f.broken, want)
		}
	}
}
