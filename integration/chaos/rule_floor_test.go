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
			members:  map[string]*member{"a": {job: memberJob{Service: s}}},
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
