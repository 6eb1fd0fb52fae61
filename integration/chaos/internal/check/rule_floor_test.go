package check

import (
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A floor that stands still is a find, unless suspects outlasted their timeouts meanwhile.
func TestStalled_ExcusesOnlySuspectsThatOutlastTheirTimeouts(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	lane := trace.TP{Topic: "orders", Partition: 0}
	for _, test := range []struct {
		name string
		is   trace.Suspects
		runs int // one after the other, each as long as its timeout and a half
		want string
	}{
		{"nothing runs", trace.Suspects{}, 0, "found"},
		{"suspects", trace.Suspects{At: 1, Feed: lane, From: 0, To: 100}, 30, "excluded"},
		{"a few of them", trace.Suspects{At: 1, Feed: lane, From: 0, To: 100}, 5, "found"},
		{"other records", trace.Suspects{At: 1, Feed: lane, From: 1000, To: 1100}, 30, "found"},
	} {
		is := trace.Logged{Suspects: []trace.Suspects{test.is}}
		for i := range int64(test.runs) {
			at := 25*second + i*3*second/2
			is.Runs = append(is.Runs, &trace.Run{Member: "a", Topic: "orders", Lane: lane, Offset: i, Start: at, End: at + 3*second/2})
		}
		s := trace.Service{Group: "billing", Topics: []string{"orders"}, Policy: trace.Policy{HandlerTimeout: time.Second}}
		ev := &evidence{
			services: []*served{{Service: s, feeds: map[trace.TP]*feed{lane: {TP: lane}}}},
			members:  map[string]*trace.Member{"a": {Job: trace.Job{Service: s}}},
			journals: map[string]trace.Logged{"a": is},
		}
		for at := second; at < 80*second; at += second / 2 {
			ev.samples = append(ev.samples, trace.Sample{Group: "billing", Began: at, Ended: at, Committed: map[trace.TP]int64{lane: 0}, Ends: map[trace.TP]int64{lane: 100}})
		}
		f := find(stalled, ev)
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
		ended trace.Verdict
		kind  string
		at    int64 // when the run ended; the fault is from 60 s to 70 s
		want  int64
	}{
		{"a copy, while a broker is down", trace.VerdictFailed, "node", 65 * second, 90 * second},
		{"a letter, soon after", trace.VerdictTerminal, "cut", 75 * second, 90 * second},
		{"a copy just before", trace.VerdictFailed, "freeze", 58 * second, 90 * second},
		{"a copy before", trace.VerdictFailed, "freeze", 50 * second, 50 * second},
		{"a copy in a calm", trace.VerdictFailed, "node", 91 * second, 91 * second},
		{"handled", trace.VerdictPassed, "node", 65 * second, 65 * second},
		{"discarded", trace.VerdictDiscard, "node", 65 * second, 65 * second},
		{"a copy, beside another fault", trace.VerdictFailed, "kill", 65 * second, 65 * second},
	} {
		m := &trace.Member{Job: trace.Job{Service: trace.Service{Policy: trace.Policy{CommitInterval: time.Second}}}}
		ev := &evidence{members: map[string]*trace.Member{"a": m}, windows: []trace.Window{{Kind: test.kind, From: 60 * second, To: 70 * second, Parts: test.kind != "kill"}}}
		last := &trace.Run{Member: "a", Start: test.at - 1, End: test.at, Verdict: test.ended}
		if got := finishedAt(ev, &delivered{runs: []*trace.Run{last}}); got != test.want {
			t.Errorf("%s: finished at %v, want %v", test.name, time.Duration(got), time.Duration(test.want))
		}
	}
}

// The find named the default, and not the time that the run had waited.
func TestStuck_NamesTheTimeOfTheRun(t *testing.T) {
	t.Parallel()
	ev := &evidence{settles: 8 * time.Second, unsettled: map[trace.TP]string{{Topic: "orders"}: "committed 1 of 2"}}
	if f := find(stuck, ev); len(f.broken) != 1 || !strings.Contains(f.broken[0].Text, "for 8s") {
		t.Errorf("found %v", f.broken)
	}
}
