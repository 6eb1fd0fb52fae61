package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// What fails in an outage strains a topic soon. A partial outage may strain it, or not.
func TestOutage_CountsWhatStrainsATopic(t *testing.T) {
	t.Parallel()
	lane := tp{"orders", 0}
	for _, test := range []struct {
		name     string
		strained time.Duration // after its begin; 0: never
		failed   verdict
		every    time.Duration
		after    time.Duration // the first run of another process
		want     int
	}{
		{"never", 0, verdictOutage, 10 * time.Millisecond, 0, 1},
		{"late", 4 * time.Second, verdictOutage, 10 * time.Millisecond, 0, 1},
		{"in time", 2 * time.Second, verdictOutage, 10 * time.Millisecond, 0, 0},
		{"within a second", 0, verdictOutage, time.Millisecond, 0, 0},
		{"within a second of a process that starts in it", 0, verdictOutage, time.Millisecond, 3 * time.Second, 0},
		{"in a partial outage", 0, verdictPart, 10 * time.Millisecond, 0, 0},
	} {
		began, of := int64(time.Minute), memberJob{Service: service{Group: "billing", Topics: []string{"orders"}}}
		var is told
		if test.strained > 0 {
			is.breakers = []breakerState{{began + int64(test.strained), "strained"}}
		}
		first := &run{member: "b", topic: "orders", lane: lane, offset: 500, start: began, end: began + 1, verdict: test.failed}
		s := &served{service: service{Group: "billing"}, records: map[int64]*record{500: {id: 500, runs: []*run{first}}}}
		for offset := range int64(500) {
			at := began + int64(test.after) + offset*int64(test.every)
			x := &run{member: "a", topic: "orders", lane: lane, offset: offset, start: at, end: at + 1, verdict: test.failed}
			is.runs = append(is.runs, x)
			s.records[offset] = &record{id: offset, runs: []*run{x}}
		}
		ev := &evidence{
			services: []*served{s}, told: map[string]told{"a": is, "b": {runs: []*run{first}}}, recovers: recoverTime,
			members: map[string]*facts{"a": {job: of}, "b": {job: of}},
		}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		if outageRule(ev, &f); len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}

// A record that never failed does not wait for those that fail in a partial outage. It may wait
// while other faults are on, everything fails, or its log is read again.
func TestOutage_FindsHealthyRecordsThatWait(t *testing.T) {
	t.Parallel()
	const logReadAgain = "the log lost its end and is read again"
	at := func(seconds int64) int64 { return (100 + seconds) * int64(time.Second) }
	half := window{kind: "tenants", from: at(0), to: at(60), down: true}
	for _, test := range []struct {
		name    string
		windows []window
		died    int64
		written int64
		runs    []*run
		want    int
	}{
		{"in time", []window{half}, 0, at(1), []*run{{start: at(29), verdict: verdictPassed}}, 0},
		{"late", []window{half}, 0, at(1), []*run{{start: at(32), verdict: verdictPassed}}, 1},
		{"late, by chance", []window{{kind: "chance", from: at(0), to: at(60), down: true}}, 0, at(1), []*run{{start: at(32), verdict: verdictPassed}}, 1},
		{"late since before", []window{half}, 0, at(-60), []*run{{start: at(29), verdict: verdictPassed}}, 0},
		{"written after it", []window{half}, 0, at(61), []*run{{start: at(99), verdict: verdictPassed}}, 0},
		{"it failed", []window{half}, 0, at(1), []*run{{start: at(32), verdict: verdictPart}, {start: at(40), verdict: verdictPassed}}, 0},
		{"a member was killed", []window{half, {kind: "kill", from: at(10), to: at(11)}}, 0, at(1), []*run{{start: at(32), verdict: verdictPassed}}, 0},
		{"and long after that", []window{half, {kind: "kill", from: at(10), to: at(11)}}, 0, at(1), []*run{{start: at(60), verdict: verdictPassed}}, 1},
		{"a record killed a member", []window{half}, at(20), at(1), []*run{{start: at(32), verdict: verdictPassed}}, 0},
		{"everything fails then", []window{half, {kind: "outage", from: at(5), to: at(20), down: true}}, 0, at(1), []*run{{start: at(65), verdict: verdictPassed}}, 0},
		{"everything failed long before", []window{half, {kind: "flaps", from: at(-80), to: at(-60), down: true}}, 0, at(1), []*run{{start: at(32), verdict: verdictPassed}}, 1},
		{"everything fails", []window{{kind: "flaps", from: at(0), to: at(60), down: true}}, 0, at(1), []*run{{start: at(32), verdict: verdictPassed}}, 0},
		{logReadAgain, []window{half}, 0, at(7), []*run{{start: at(40), verdict: verdictPassed}}, 0},
		{logReadAgain + " later", []window{half}, 0, at(1), []*run{{start: at(32), verdict: verdictPassed}}, 1},
	} {
		s := &served{
			service: service{Group: "billing", Policy: policy{Session: session}},
			records: map[int64]*record{7: {id: 7, origin: &kgo.Record{Topic: "orders"}, runs: test.runs}},
		}
		ev := &evidence{
			services: []*served{s}, windows: test.windows, recovers: recoverTime,
			acked: map[int64]written{7: {topic: "orders", at: test.written}},
		}
		if again := at(5); strings.HasPrefix(test.name, logReadAgain) {
			if test.name != logReadAgain {
				again = at(33)
			}
			ev.older = []olderLog{{tp{topic: "orders"}, 2, 100}}
			ev.told = map[string]told{"a": {lanes: []laneChange{{again, laneReread, tp{topic: "orders"}}}}}
		}
		if test.died > 0 {
			ev.died = []*facts{{job: memberJob{Service: s.service}, ended: test.died}}
		}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		if outageRule(ev, &f); len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}

// A topic is held only if nearly all records of its source fail.
func TestOutage_FindsTopicsThatAreHeldInVain(t *testing.T) {
	t.Parallel()
	ten := func(n int64) int64 { return 10 * n * int64(time.Millisecond) }
	for failed, want := range map[int]int{60: 1, 80: 1, 98: 0, 100: 0} { // in percent
		is := told{breakers: []breakerState{{at: ten(500), to: "strained"}, {at: ten(1000), to: "held"}, {at: ten(2000), to: "closed"}}}
		for at := range int64(1500) {
			v := verdictPassed // also before the outage, and after it
			if at >= 800 && int(at%100) < failed || at > 1000 {
				v = verdictPart
			}
			lane := tp{"orders", 0}
			is.runs = append(is.runs, &run{topic: "orders", lane: lane, start: ten(at), end: ten(at) + 1, verdict: v})
			is.runs = append(is.runs, &run{topic: "orders.retry.2s", lane: lane, start: ten(at), end: ten(at) + 1, verdict: verdictPassed})
		}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		if heldInVain("a", is, &f); len(f.broken) != want {
			t.Errorf("%d %% failed: found %v, want %d", failed, f.broken, want)
		}
	}
}

// A topic is not held beyond its time after an outage, also a partial one.
func TestOutage_FindsTopicsThatStayHeld(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) int64 { return (100 + seconds) * int64(time.Second) }
	for _, failed := range []verdict{verdictOutage, verdictPart} {
		for until, want := range map[int64]int{29: 0, 31: 1} {
			x := &run{member: "a", topic: "orders", start: at(0), end: at(0), verdict: failed}
			ev := &evidence{
				services: []*served{{service: service{Group: "billing"}, records: map[int64]*record{7: {runs: []*run{x}}}}}, recovers: recoverTime,
				told:    map[string]told{"a": {runs: []*run{x}, breakers: []breakerState{{at(-5), "held"}, {at(until), "closed"}}}},
				members: map[string]*facts{"a": {job: memberJob{Service: service{Group: "billing", Topics: []string{"orders"}}}}},
			}
			f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
			if outageRule(ev, &f); len(f.broken) != want {
				t.Errorf("%s, held until %d s after: found %v, want %d", failed, until, f.broken, want)
			}
		}
	}
}

// A record whose attempts all failed before a breaker could open is no find. One that had the time,
// or failed in a hold, is.
func TestOutage_ExcusesOnlyWhatEndsBeforeTheBreakerOpens(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	for _, test := range []struct {
		name   string
		lasts  int64 // from the first attempt to the last
		opened int64 // when the hold began; 0 if it did not
		failed verdict
		want   int
	}{
		{"short tiers", 4 * second, 0, verdictOutage, 0},
		{"the breaker opens later", 4 * second, 65 * second, verdictOutage, 0},
		{"tiers that last", 6 * second, 0, verdictOutage, 1},
		{"on an open breaker", 4 * second, 62 * second, verdictOutage, 1},
		{"in a partial outage", 4 * second, 62 * second, verdictPart, 1},
	} {
		r := &record{id: 7, origin: &kgo.Record{Topic: "orders"}}
		for attempt := range int64(3) {
			at := 60*second + attempt*test.lasts/2
			r.runs = append(r.runs, &run{member: "a", attempt: int(attempt) + 1, start: at, end: at + 1, verdict: test.failed})
		}
		is := told{}
		if test.opened > 0 {
			is.breakers = []breakerState{{at: test.opened, to: "held"}}
		}
		ev := &evidence{members: map[string]*facts{"a": {}}, told: map[string]told{"a": is}}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		deadInOutage(ev, &served{}, r, &copied{rec: &kgo.Record{Topic: "orders.dlq"}}, &f)
		if len(f.broken) != test.want || test.want == 0 && f.excluded["dead-lettered in an outage, before the breaker had opened"] != 1 {
			t.Errorf("%s: found %v, want %d; excluded %v", test.name, f.broken, test.want, f.excluded)
		}
	}
}

// A copy of what failed in a hold is one of a probe, if the guard has had the time for a first one,
// and nothing has passed before it, or behind it.
func TestOutage_FindsProbesThatCost(t *testing.T) {
	t.Parallel()
	opened := int64(time.Minute)
	at := func(after time.Duration) int64 { return opened + int64(after) }
	for _, test := range []struct {
		name   string
		after  time.Duration
		passed *run // beside it
		want   int
	}{
		{"before it", -time.Second, nil, 0},
		{"just begun", 113 * time.Millisecond, nil, 0},
		{"probe", time.Second, nil, 1},
		{"one behind it passed", time.Second, &run{partition: 3, offset: 8, start: at(9 * time.Second)}, 0},
		{"one passed before", time.Second, &run{partition: 2, offset: 1, start: at(0), end: at(time.Millisecond)}, 0},
		{"one in front of it passed later", time.Second, &run{partition: 3, offset: 6, start: at(9 * time.Second), end: at(9 * time.Second)}, 1},
		{"one of another partition passed later", time.Second, &run{partition: 2, offset: 8, start: at(9 * time.Second), end: at(9 * time.Second)}, 1},
		{"one behind it passed after the hold", time.Second, &run{partition: 3, offset: 8, start: at(11 * time.Second)}, 1},
	} {
		x := &run{member: "a", partition: 3, offset: 7, attempt: 3, start: at(test.after), verdict: verdictOutage}
		is := told{runs: []*run{x}, breakers: []breakerState{{at: opened, to: "held"}, {at: at(10 * time.Second), to: "strained"}}}
		if y := test.passed; y != nil {
			y.verdict = verdictPassed
			is.runs = append(is.runs, y)
		}
		c := &copied{rec: &kgo.Record{Topic: "orders.retry.4s"}, meta: headers.Meta{Class: classOutage, Attempts: 3}}
		ev := &evidence{told: map[string]told{"a": is}}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		probeCost(ev, &record{id: 7, origin: &kgo.Record{Topic: "orders"}, runs: []*run{x}}, c, &f)
		if len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}
