package check

import (
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// Brokers that fail are no excuse for a member that does not end.
func TestEnded_NeedsNoBrokers(t *testing.T) {
	t.Parallel()
	ev := &evidence{members: map[string]*trace.Member{}, windows: []trace.Window{{Kind: "node", From: 0, To: int64(time.Hour), Infra: true, Parts: true}}}
	for name, took := range map[string]time.Duration{"in time": 16 * time.Second, "late": 18 * time.Second} {
		m := &trace.Member{Termed: int64(time.Minute), Ended: int64(time.Minute + took)}
		m.Job.Service.Policy.DrainTimeout = 5 * time.Second
		ev.members[name] = m
	}
	f := find(endedRule, ev)
	if len(f.broken) != 1 || !slices.ContainsFunc(f.broken, func(v Finding) bool { return v.Topic == "late" }) {
		t.Errorf("found %v, want the late one", f.broken)
	}
}

// A permission that was taken long before is no excuse for a member that ends.
func TestDied_LackedThePermissionAtItsEnd(t *testing.T) {
	t.Parallel()
	for ended, want := range map[time.Duration]bool{20 * time.Second: false, 35 * time.Second: true, 50 * time.Second: true, time.Minute: false} {
		ev := &evidence{windows: []trace.Window{{Kind: "rights", From: int64(30 * time.Second), To: int64(40 * time.Second)}}}
		if got := lackedRight(ev, &trace.Member{Began: int64(time.Second), Ended: int64(ended)}); got != want {
			t.Errorf("of a member that ended at %v: %v, want %v", ended, got, want)
		}
	}
	for ended, want := range map[time.Duration]bool{time.Minute: true, 75 * time.Second: false} {
		ev := &evidence{windows: []trace.Window{
			{Kind: "rights", From: int64(30 * time.Second), To: int64(40 * time.Second)}, {Kind: "freeze", From: int64(35 * time.Second), To: int64(46 * time.Second)},
		}}
		if got := lackedRight(ev, &trace.Member{Began: int64(50 * time.Second), Ended: int64(ended)}); got != want {
			t.Errorf("behind a frozen broker, of a member that ended at %v: %v, want %v", ended, got, want)
		}
	}
}

// A handler that discarded its record just before its lane was lost is not measured. That explains
// as many records as calls are missing, and no more.
func TestMetrics_LackOnlyWhatWasCutOffLate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name               string
		handled, discarded int64
		want               int
	}{
		{"all", 2, 3, 0},
		{"a discarded one was cut off", 2, 2, 0},
		{"a discarded one is taken for handled", 3, 2, 2},
		{"one more is discarded", 2, 4, 2},
		{"two were cut off", 2, 1, 1},
	} {
		is := trace.Logged{}
		for _, v := range []trace.Verdict{trace.VerdictPassed, trace.VerdictPassed, trace.VerdictDiscard, trace.VerdictDiscard, trace.VerdictDiscard, trace.VerdictDrained} {
			is.Runs = append(is.Runs, &trace.Run{Member: "a", Start: 1, End: 2, Verdict: v})
		}
		ev := &evidence{members: map[string]*trace.Member{}, journals: map[string]trace.Logged{"a": is}, metrics: map[string]trace.Measured{"a": {
			"messaging.process.duration": test.handled, "messaging.process.duration discarded": test.discarded,
		}}}
		wants(t, test.name, find(metricsRule, ev), test.want)
	}
}

// A handler failed, and its lane was lost before that was counted. In the journal of an overloaded
// machine the loss came 40 ms later, and no other run was cut off by it.
func TestMetrics_LackWhatFailedAsItsLaneWasLost(t *testing.T) {
	t.Parallel()
	lane := trace.TP{Topic: "orders", Partition: 1}
	end := int64(time.Second)
	for _, test := range []struct {
		name    string
		lane    trace.TP
		lost    time.Duration // after the handler's end
		what    trace.Change
		verdict trace.Verdict
		want    int
	}{
		{"lost", lane, 40 * time.Millisecond, trace.LaneEnded, trace.VerdictFailed, 0},
		{"restarted", lane, 40 * time.Millisecond, trace.LaneRestarted, trace.VerdictPanic, 0},
		{"lost later", lane, 400 * time.Millisecond, trace.LaneEnded, trace.VerdictFailed, 1},
		{"lost before", lane, -time.Millisecond, trace.LaneEnded, trace.VerdictFailed, 1},
		{"handed over", lane, 40 * time.Millisecond, trace.LaneHandedOver, trace.VerdictFailed, 1},
		{"another lane", trace.TP{Topic: "orders", Partition: 2}, 40 * time.Millisecond, trace.LaneEnded, trace.VerdictFailed, 1},
		{"handled", lane, 40 * time.Millisecond, trace.LaneEnded, trace.VerdictPassed, 2},
	} {
		is := trace.Logged{
			Runs:  []*trace.Run{{Member: "a", Start: 1, End: end, Verdict: test.verdict, Lane: lane}},
			Lanes: []trace.LaneChange{{At: end + int64(test.lost), What: test.what, Lane: test.lane}},
		}
		ev := &evidence{members: map[string]*trace.Member{}, journals: map[string]trace.Logged{"a": is}, metrics: map[string]trace.Measured{"a": {}}}
		wants(t, test.name, find(metricsRule, ev), test.want)
	}
}
