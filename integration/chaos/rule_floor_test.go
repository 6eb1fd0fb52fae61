package chaos

import (
	"testing"
	"time"
)

// A floor that stands still is a find, unless suspects outlasted their timeouts meanwhile.
func TestStalled_ExcusesOnlySuspectsThatOutlastTheirTimeouts(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	lane := tp{"orders", 0}
	for _, test := range []struct {
		name string
		is   suspects
		runs int // one after the other, each as long as its timeout and a half
		want string
	}{
		{"nothing runs", suspects{}, 0, "found"},
		{"suspects", suspects{at: 1, feed: lane, from: 0, to: 100}, 30, "excluded"},
		{"a few of them", suspects{at: 1, feed: lane, from: 0, to: 100}, 5, "found"},
		{"other records", suspects{at: 1, feed: lane, from: 1000, to: 1100}, 30, "found"},
	} {
		is := told{suspects: []suspects{test.is}}
		for i := range int64(test.runs) {
			at := 25*second + i*3*second/2
			is.runs = append(is.runs, &run{member: "a", topic: "orders", lane: lane, offset: i, start: at, end: at + 3*second/2})
		}
		s := service{Group: "billing", Topics: []string{"orders"}, Policy: policy{HandlerTimeout: time.Second}}
		ev := &evidence{
			services: []*served{{service: s, feeds: map[tp]*feed{lane: {tp: lane}}}},
			members:  map[string]*facts{"a": {job: memberJob{Service: s}}},
			told:     map[string]told{"a": is},
		}
		for at := second; at < 80*second; at += second / 2 {
			ev.samples = append(ev.samples, sample{group: "billing", began: at, ended: at, committed: map[tp]int64{lane: 0}, ends: map[tp]int64{lane: 100}})
		}
		f := findings{rule: "stalled", counted: map[string]int{}, excluded: map[string]int{}}
		stalled(ev, &f)
		got := ""
		if len(f.broken) > 0 {
			got = "found"
		} else if f.excluded["a floor stood still, while suspects outlasted their timeouts"] > 0 {
			got = "excluded"
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q: %v", test.name, got, test.want, f.broken)
		}
	}
}

// A copy whose request may have got no answer has more time to be safe than a record that was
// handled. One of a calm has not.
func TestPrompt_WaitsForRequestsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	for _, test := range []struct {
		name  string
		ended verdict
		kind  string
		at    int64 // when the run ended; the fault is from 60 s to 70 s
		want  int64
	}{
		{"a copy, while a broker is down", verdictFailed, "node", 65 * second, 90 * second},
		{"a letter, soon after", verdictTerminal, "cut", 75 * second, 90 * second},
		{"a copy just before", verdictFailed, "freeze", 58 * second, 90 * second},
		{"a copy before", verdictFailed, "freeze", 50 * second, 50 * second},
		{"a copy in a calm", verdictFailed, "node", 91 * second, 91 * second},
		{"handled", verdictPassed, "node", 65 * second, 65 * second},
		{"discarded", verdictDiscard, "node", 65 * second, 65 * second},
		{"a copy, beside another fault", verdictFailed, "kill", 65 * second, 65 * second},
	} {
		m := &facts{job: memberJob{Service: service{Policy: policy{CommitInterval: time.Second}}}}
		ev := &evidence{members: map[string]*facts{"a": m}, windows: []window{{kind: test.kind, from: 60 * second, to: 70 * second, parts: test.kind != "kill"}}}
		last := &run{member: "a", start: test.at - 1, end: test.at, verdict: test.ended}
		if got := finishedAt(ev, &delivered{runs: []*run{last}}); got != test.want {
			t.Errorf("%s: finished at %v, want %v", test.name, time.Duration(got), time.Duration(test.want))
		}
	}
}
