package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// What fails in an outage strains a topic soon. A partial outage may strain it, or not. Good runs
// of the ten seconds before a gap outweigh some.
func TestOutage_CountsWhatStrainsATopic(t *testing.T) {
	t.Parallel()
	lane := trace.TP{Topic: "orders", Partition: 0}
	for _, test := range []struct {
		name     string
		strained time.Duration // after its begin; 0: never
		failed   trace.Verdict
		every    time.Duration
		after    time.Duration // the first run of another process
		good     int           // a second, for twenty seconds, before half a minute without any
		want     int
	}{
		{"never", 0, trace.VerdictOutage, 10 * time.Millisecond, 0, 0, 1},
		{"late", 4 * time.Second, trace.VerdictOutage, 10 * time.Millisecond, 0, 0, 1},
		{"in time", 2 * time.Second, trace.VerdictOutage, 10 * time.Millisecond, 0, 0, 0},
		{"within a second", 0, trace.VerdictOutage, time.Millisecond, 0, 0, 0},
		{"within a second of a process that starts in it", 0, trace.VerdictOutage, time.Millisecond, 3 * time.Second, 0, 0},
		{"behind good runs and a gap", 0, trace.VerdictOutage, 10 * time.Millisecond, 0, 150, 0},
		{"behind too few good runs and a gap", 0, trace.VerdictOutage, 10 * time.Millisecond, 0, 100, 1},
		{"in a partial outage", 0, trace.VerdictPart, 10 * time.Millisecond, 0, 0, 0},
	} {
		began, of := int64(time.Minute), trace.Job{Service: trace.Service{Group: "billing", Topics: []string{"orders"}}}
		var is trace.Logged
		if test.strained > 0 {
			is.Breakers = []trace.BreakerState{{At: began + int64(test.strained), To: "strained"}}
		}
		first := &trace.Run{Member: "b", Topic: "orders", Lane: lane, Offset: 500, Start: began, End: began + 1, Verdict: test.failed}
		for i := range 20 * test.good {
			at := began + int64(i-20*test.good)*int64(time.Second)/int64(test.good) - int64(30*time.Second)
			is.Runs = append(is.Runs, &trace.Run{Member: "a", Topic: "orders", Lane: lane, Start: at, End: at + 1, Verdict: trace.VerdictPassed})
		}
		s := &served{Service: trace.Service{Group: "billing"}, records: map[int64]*record{500: {id: 500, runs: []*trace.Run{first}}}}
		for offset := range int64(500) {
			at := began + int64(test.after) + offset*int64(test.every)
			x := &trace.Run{Member: "a", Topic: "orders", Lane: lane, Offset: offset, Start: at, End: at + 1, Verdict: test.failed}
			is.Runs = append(is.Runs, x)
			s.records[offset] = &record{id: offset, runs: []*trace.Run{x}}
		}
		ev := &evidence{
			services: []*served{s}, journals: map[string]trace.Logged{"a": is, "b": {Runs: []*trace.Run{first}}}, recovers: RecoverTime,
			members: map[string]*trace.Member{"a": {Job: of}, "b": {Job: of}},
		}
		wants(t, test.name, find(outageRule, ev), test.want)
	}
}

// A record that never failed does not wait for those that fail in a partial outage. It may wait
// while other faults are on, everything fails, or its log is read again.
func TestOutage_FindsHealthyRecordsThatWait(t *testing.T) {
	t.Parallel()
	const logReadAgain = "the log lost its end and is read again"
	at := func(seconds int64) int64 { return (100 + seconds) * int64(time.Second) }
	half := trace.Window{Kind: "tenants", From: at(0), To: at(60), Down: true}
	for _, test := range []struct {
		name    string
		windows []trace.Window
		died    int64
		written int64
		runs    []*trace.Run
		want    int
	}{
		{"in time", []trace.Window{half}, 0, at(1), []*trace.Run{{Start: at(29), Verdict: trace.VerdictPassed}}, 0},
		{"late", []trace.Window{half}, 0, at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPassed}}, 1},
		{"late, by chance", []trace.Window{{Kind: "chance", From: at(0), To: at(60), Down: true}}, 0, at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPassed}}, 1},
		{"late since before", []trace.Window{half}, 0, at(-60), []*trace.Run{{Start: at(29), Verdict: trace.VerdictPassed}}, 0},
		{"written after it", []trace.Window{half}, 0, at(61), []*trace.Run{{Start: at(99), Verdict: trace.VerdictPassed}}, 0},
		{"it failed", []trace.Window{half}, 0, at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPart}, {Start: at(40), Verdict: trace.VerdictPassed}}, 0},
		{"a member was killed", []trace.Window{half, {Kind: "kill", From: at(10), To: at(11)}}, 0, at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPassed}}, 0},
		{"and long after that", []trace.Window{half, {Kind: "kill", From: at(10), To: at(11)}}, 0, at(1), []*trace.Run{{Start: at(60), Verdict: trace.VerdictPassed}}, 1},
		{"a record killed a member", []trace.Window{half}, at(20), at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPassed}}, 0},
		{"everything fails then", []trace.Window{half, {Kind: "outage", From: at(5), To: at(20), Down: true}}, 0, at(1), []*trace.Run{{Start: at(65), Verdict: trace.VerdictPassed}}, 0},
		{"everything failed long before", []trace.Window{half, {Kind: "flaps", From: at(-80), To: at(-60), Down: true}}, 0, at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPassed}}, 1},
		{"everything fails", []trace.Window{{Kind: "flaps", From: at(0), To: at(60), Down: true}}, 0, at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPassed}}, 0},
		{logReadAgain, []trace.Window{half}, 0, at(7), []*trace.Run{{Start: at(40), Verdict: trace.VerdictPassed}}, 0},
		{logReadAgain + " later", []trace.Window{half}, 0, at(1), []*trace.Run{{Start: at(32), Verdict: trace.VerdictPassed}}, 1},
	} {
		s := &served{
			Service: trace.Service{Group: "billing", Policy: trace.Policy{Session: trace.Session}},
			records: map[int64]*record{7: {id: 7, origin: &kgo.Record{Topic: "orders"}, runs: test.runs}},
		}
		ev := &evidence{
			services: []*served{s}, windows: test.windows, recovers: RecoverTime,
			acked: map[int64]trace.Written{7: {Topic: "orders", At: test.written}},
		}
		if again := at(5); strings.HasPrefix(test.name, logReadAgain) {
			if test.name != logReadAgain {
				again = at(33)
			}
			ev.older = []trace.OlderLog{{TP: trace.TP{Topic: "orders"}, From: 2}}
			ev.journals = map[string]trace.Logged{"a": {Lanes: []trace.LaneChange{{At: again, What: trace.LaneReread, Lane: trace.TP{Topic: "orders"}}}}}
		}
		if test.died > 0 {
			ev.died = []*trace.Member{{Job: trace.Job{Service: s.Service}, Ended: test.died}}
		}
		wants(t, test.name, find(outageRule, ev), test.want)
	}
}

// A topic is held only if nearly all records of its source fail.
func TestOutage_FindsTopicsThatAreHeldInVain(t *testing.T) {
	t.Parallel()
	ten := func(n int64) int64 { return 10 * n * int64(time.Millisecond) }
	for failed, want := range map[int]int{60: 1, 80: 1, 98: 0, 100: 0} { // in percent
		is := trace.Logged{Breakers: []trace.BreakerState{{At: ten(500), To: "strained"}, {At: ten(1000), To: "held"}, {At: ten(2000), To: "closed"}}}
		for at := range int64(1500) {
			v := trace.VerdictPassed // also before the outage, and after it
			if at >= 800 && int(at%100) < failed || at > 1000 {
				v = trace.VerdictPart
			}
			lane := trace.TP{Topic: "orders", Partition: 0}
			is.Runs = append(is.Runs, &trace.Run{Topic: "orders", Lane: lane, Start: ten(at), End: ten(at) + 1, Verdict: v})
			is.Runs = append(is.Runs, &trace.Run{Topic: "orders.retry.2s", Lane: lane, Start: ten(at), End: ten(at) + 1, Verdict: trace.VerdictPassed})
		}
		wants(t, fmt.Sprint(failed, " % failed"), find(func(_ *evidence, f *findings) { heldInVain("a", is, f) }, nil), want)
	}
}

// A topic is not held beyond its time after an outage, also a partial one.
func TestOutage_FindsTopicsThatStayHeld(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) int64 { return (100 + seconds) * int64(time.Second) }
	for _, failed := range []trace.Verdict{trace.VerdictOutage, trace.VerdictPart} {
		for until, want := range map[int64]int{29: 0, 31: 1} {
			x := &trace.Run{Member: "a", Topic: "orders", Start: at(0), End: at(0), Verdict: failed}
			ev := &evidence{
				services: []*served{{Service: trace.Service{Group: "billing"}, records: map[int64]*record{7: {runs: []*trace.Run{x}}}}}, recovers: RecoverTime,
				journals: map[string]trace.Logged{"a": {Runs: []*trace.Run{x}, Breakers: []trace.BreakerState{{At: at(-5), To: "held"}, {At: at(until), To: "closed"}}}},
				members:  map[string]*trace.Member{"a": {Job: trace.Job{Service: trace.Service{Group: "billing", Topics: []string{"orders"}}}}},
			}
			wants(t, fmt.Sprint(failed, ", held until ", until, " s after"), find(outageRule, ev), want)
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
		failed trace.Verdict
		want   int
	}{
		{"short tiers", 4 * second, 0, trace.VerdictOutage, 0},
		{"the breaker opens later", 4 * second, 65 * second, trace.VerdictOutage, 0},
		{"tiers that last", 6 * second, 0, trace.VerdictOutage, 1},
		{"on an open breaker", 4 * second, 62 * second, trace.VerdictOutage, 1},
		{"in a partial outage", 4 * second, 62 * second, trace.VerdictPart, 1},
	} {
		r := &record{id: 7, origin: &kgo.Record{Topic: "orders"}}
		for attempt := range int64(3) {
			at := 60*second + attempt*test.lasts/2
			r.runs = append(r.runs, &trace.Run{Member: "a", Attempt: int(attempt) + 1, Start: at, End: at + 1, Verdict: test.failed})
		}
		is := trace.Logged{}
		if test.opened > 0 {
			is.Breakers = []trace.BreakerState{{At: test.opened, To: "held"}}
		}
		ev := &evidence{members: map[string]*trace.Member{"a": {}}, journals: map[string]trace.Logged{"a": is}}
		letter := &copied{rec: &kgo.Record{Topic: "orders.dlq"}}
		f := find(func(ev *evidence, f *findings) { deadInOutage(ev, &served{}, r, letter, f) }, ev)
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
		passed *trace.Run // beside it
		want   int
	}{
		{"before it", -time.Second, nil, 0},
		{"just begun", 113 * time.Millisecond, nil, 0},
		{"probe", time.Second, nil, 1},
		{"one behind it passed", time.Second, &trace.Run{Partition: 3, Offset: 8, Start: at(9 * time.Second)}, 0},
		{"one passed before", time.Second, &trace.Run{Partition: 2, Offset: 1, Start: at(0), End: at(time.Millisecond)}, 0},
		{"one in front of it passed later", time.Second, &trace.Run{Partition: 3, Offset: 6, Start: at(9 * time.Second), End: at(9 * time.Second)}, 1},
		{"one of another partition passed later", time.Second, &trace.Run{Partition: 2, Offset: 8, Start: at(9 * time.Second), End: at(9 * time.Second)}, 1},
		{"one behind it passed after the hold", time.Second, &trace.Run{Partition: 3, Offset: 8, Start: at(11 * time.Second)}, 1},
	} {
		x := &trace.Run{Member: "a", Partition: 3, Offset: 7, Attempt: 3, Start: at(test.after), Verdict: trace.VerdictOutage}
		is := trace.Logged{Runs: []*trace.Run{x}, Breakers: []trace.BreakerState{{At: opened, To: "held"}, {At: at(10 * time.Second), To: "strained"}}}
		if y := test.passed; y != nil {
			y.Verdict = trace.VerdictPassed
			is.Runs = append(is.Runs, y)
		}
		c := &copied{rec: &kgo.Record{Topic: "orders.retry.4s"}, meta: headers.Meta{Class: trace.ClassOutage, Attempts: 3}}
		ev := &evidence{journals: map[string]trace.Logged{"a": is}}
		r := &record{id: 7, origin: &kgo.Record{Topic: "orders"}, runs: []*trace.Run{x}}
		wants(t, test.name, find(func(ev *evidence, f *findings) { probeCost(ev, r, c, f) }, ev), test.want)
	}
}
