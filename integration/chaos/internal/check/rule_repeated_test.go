package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A record that was handled runs again only if its lane ended otherwise than by a hand-over. That
// processes come and go around it is no excuse.
func TestRepeated_WantsTheEndOfTheLane(t *testing.T) {
	t.Parallel()
	lane := trace.TP{Topic: "orders", Partition: 0}
	second := func(s float64) int64 { return int64(s * float64(time.Second)) }
	assigned := func(at float64) trace.LaneChange {
		return trace.LaneChange{At: second(at), What: trace.LaneAssigned, Lane: lane}
	}
	ended := func(at float64) trace.LaneChange {
		return trace.LaneChange{At: second(at), What: trace.LaneEnded, Lane: lane}
	}
	handed := func(at float64) trace.LaneChange {
		return trace.LaneChange{At: second(at), What: trace.LaneHandedOver, Lane: lane}
	}
	again := func(what trace.Change, at float64) trace.LaneChange {
		return trace.LaneChange{At: second(at), What: what, Lane: lane}
	}
	type call struct {
		member string
		at     float64
		trace.Verdict
	}
	for _, test := range []struct {
		name   string
		calls  []call
		lanes  map[string][]trace.LaneChange
		older  bool
		sample bool // the record is committed at 15 s
		want   string
	}{
		{"by its member, which kept the lane", []call{{"a", 10, trace.VerdictPassed}, {"a", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1)}}, false, false, "its lane had not ended"},
		{"by its member, which lost the lane", []call{{"a", 10, trace.VerdictPassed}, {"a", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), ended(12), assigned(18)}}, false, false, ""},
		{"by its member, after another one", []call{{"a", 10, trace.VerdictPassed}, {"b", 15, trace.VerdictPassed}, {"a", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1)}, "b": {assigned(14)}}, false, false, "its lane had not ended"},
		{"in place", []call{{"a", 10, trace.VerdictFailed}, {"a", 11, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1)}}, false, false, ""},
		{"cut off, on a lane that stays", []call{{"a", 10, trace.VerdictDrained}, {"a", 11, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1)}}, false, false, "its lane had not ended"},
		{"after a hand-over", []call{{"a", 10, trace.VerdictPassed}, {"b", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), handed(12)}, "b": {assigned(13)}}, false, false, "handed its lane over in order"},
		{"after a hand-over and a return", []call{{"a", 10, trace.VerdictPassed}, {"a", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), handed(12), assigned(18)}}, false, false, "handed its lane over in order"},
		{"after a hand-over that failed", []call{{"a", 10, trace.VerdictPassed}, {"b", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), ended(12)}, "b": {assigned(13)}}, false, false, ""},
		{"as the membership was lost at the end of a drain", []call{{"a", 10, trace.VerdictPassed}, {"b", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), handed(12), ended(12.001)}, "b": {assigned(13)}}, false, false, ""},
		{"before the hand-over of a lane that was lost", []call{{"a", 10, trace.VerdictPassed}, {"b", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), handed(25)}, "b": {assigned(13)}}, false, false, ""},
		{"as it failed before the hand-over", []call{{"a", 10, trace.VerdictFailed}, {"b", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), handed(12)}, "b": {assigned(13)}}, false, false, ""},
		{"committed before the lane began", []call{{"a", 10, trace.VerdictPassed}, {"b", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1)}, "b": {assigned(17)}}, false, true, "had been committed"},
		{"of an older log", []call{{"a", 10, trace.VerdictPassed}, {"a", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), again(trace.LaneReread, 17)}}, true, true, ""},
		{"after a hand-over, and an owner that read the older log again", []call{{"a", 10, trace.VerdictPassed}, {"b", 20, trace.VerdictPassed}, {"c", 30, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1), handed(12)}, "b": {assigned(13), again(trace.LaneReread, 17)}, "c": {assigned(25)}}, true, false, ""},
		{"of an older log that nobody read again", []call{{"a", 10, trace.VerdictPassed}, {"b", 20, trace.VerdictPassed}}, map[string][]trace.LaneChange{"a": {assigned(1)}, "b": {assigned(17)}}, true, true, "had been committed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			of := &record{id: 7, origin: &kgo.Record{Topic: "orders", Offset: 5}}
			d := &delivered{offset: 5, of: of}
			ev := &evidence{members: map[string]*trace.Member{"a": {}, "b": {}, "c": {}}, journals: map[string]trace.Logged{}}
			for _, c := range test.calls {
				d.runs = append(d.runs, &trace.Run{Member: c.member, ID: 7, Topic: "orders", Offset: 5, Lane: lane, Start: second(c.at), End: second(c.at + 0.1), Verdict: c.Verdict})
			}
			for name, lanes := range test.lanes {
				ev.journals[name] = trace.Logged{Lanes: lanes}
			}
			if test.older {
				ev.older = []trace.OlderLog{{TP: lane, From: 50}}
			}
			var samples []*trace.Sample
			if test.sample {
				samples = []*trace.Sample{{Ended: second(15), Committed: map[trace.TP]int64{lane: 6}, Epochs: map[trace.TP]int32{}}}
			}
			switch f := repetitionsOf(ev, d, lane, samples...); {
			case test.want == "" && len(f.broken) > 0:
				t.Errorf("found %v, want nothing", f.broken)
			case test.want != "" && (len(f.broken) != 1 || !strings.Contains(f.broken[0].Text, test.want)):
				t.Errorf("found %v, want one: %s", f.broken, test.want)
			}
		})
	}
}

// repetitionsOf checks a delivery of a source, with one retry in place.
func repetitionsOf(ev *evidence, d *delivered, lane trace.TP, samples ...*trace.Sample) findings {
	return find(func(ev *evidence, f *findings) {
		repetitions(ev, &served{Service: trace.Service{Policy: trace.Policy{InPlace: 1}}}, &feed{TP: lane, source: true}, d, samples, f)
	}, ev)
}

// A lane that begins anew runs a record anew, also in place.
func TestRepeated_CountsRunsInPlaceAnewOnAnotherLane(t *testing.T) {
	t.Parallel()
	lane := trace.TP{Topic: "orders", Partition: 0}
	d := &delivered{offset: 5, of: &record{id: 7, origin: &kgo.Record{Topic: "orders", Offset: 5}}}
	for _, second := range []int64{10, 20, 21} {
		at := second * int64(time.Second)
		d.runs = append(d.runs, &trace.Run{Member: "a", ID: 7, Topic: "orders", Offset: 5, Lane: lane, Start: at, End: at + 1, Verdict: trace.VerdictFailed})
	}
	ev := &evidence{members: map[string]*trace.Member{"a": {}}, journals: map[string]trace.Logged{"a": {
		Lanes: []trace.LaneChange{{At: 1, What: trace.LaneAssigned, Lane: lane}, {At: 15 * int64(time.Second), What: trace.LaneAssigned, Lane: lane}},
	}}}
	wants(t, "three runs", repetitionsOf(ev, d, lane), 0)
}

// A record that failed in place, then as a probe, and whose breaker closed may fail in place again.
func TestRepeated_CountsRunsInPlaceAnewAfterAProbe(t *testing.T) {
	t.Parallel()
	lane := trace.TP{Topic: "orders", Partition: 0}
	of := &record{id: 7, origin: &kgo.Record{Topic: "orders", Offset: 5}}
	for calls, want := range map[int]int{5: 0, 6: 1} {
		d := &delivered{offset: 5, of: of}
		for i := range calls {
			at := int64(i+10) * int64(time.Second)
			d.runs = append(d.runs, &trace.Run{Member: "a", ID: 7, Topic: "orders", Offset: 5, Lane: lane, Start: at, End: at + 1, Verdict: trace.VerdictFailed})
		}
		ev := &evidence{members: map[string]*trace.Member{"a": {}}, journals: map[string]trace.Logged{"a": {
			Lanes:    []trace.LaneChange{{At: 1, What: trace.LaneAssigned, Lane: lane}},
			Breakers: []trace.BreakerState{{At: d.runs[1].End, To: "held"}, {At: d.runs[2].End, To: "closed"}},
		}}}
		wants(t, fmt.Sprint(calls, " runs"), repetitionsOf(ev, d, lane), want)
	}
}
