package chaos

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A record at an offset that was lost with the end of a log is another one: a commit from before
// says nothing about it, and one of its own time does.
func TestCommitted_JudgesWhatWasWrittenSinceALoss(t *testing.T) {
	t.Parallel()
	at := tp{"orders", 0}
	for _, test := range []struct {
		name     string
		commits  []sample
		broken   int
		excluded int
	}{
		{"of the old end only", []sample{{ended: 30, committed: map[tp]int64{at: 3}, epochs: map[tp]int32{at: 0}}}, 0, 1},
		{"of both", []sample{
			{ended: 30, committed: map[tp]int64{at: 3}, epochs: map[tp]int32{at: 0}},
			{ended: 50, committed: map[tp]int64{at: 3}, epochs: map[tp]int32{at: 4}},
		}, 0, 0},
		{"ahead of the new record", []sample{{ended: 30, committed: map[tp]int64{at: 3}, epochs: map[tp]int32{at: 4}}}, 1, 0},
	} {
		f := findings{rule: "committed", counted: map[string]int{}, excluded: map[string]int{}}
		all := &feed{tp: at, source: true, at: map[int64]*delivered{}}
		for offset := range int64(3) {
			of := &record{id: offset, origin: &kgo.Record{Topic: "orders", Offset: offset}}
			x := &run{member: "a", id: offset, start: 10, end: 11, verdict: verdictPassed}
			if offset == 2 { // since the loss at 20
				of.origin.LeaderEpoch, x.start, x.end = 4, 40, 41
			}
			all.at[offset] = &delivered{offset: offset, of: of, runs: []*run{x}}
		}
		ev := &evidence{
			services: []*served{{feeds: map[tp]*feed{at: all}}},
			samples:  test.commits,
			older:    []olderLog{{at, 2, 20}},
		}
		committedRule(ev, &f)
		if n := f.excluded["passed by a commit of the lost end of a log only"]; len(f.broken) != test.broken || n != test.excluded {
			t.Errorf("%s: found %v and excluded %d, want %d and %d", test.name, f.broken, n, test.broken, test.excluded)
		}
	}
}

// That a log lost its end is no excuse for a commit of an old floor: the owner has to tell that it
// read the log again.
func TestRewound_NeedsAnOwnerThatReadsTheLogAgain(t *testing.T) {
	t.Parallel()
	at := tp{"orders", 0}
	for _, test := range []struct {
		name  string
		older []olderLog
		lanes []laneChange
		want  int
	}{
		{"read again", []olderLog{{at, 4, int64(9 * time.Second)}}, []laneChange{{int64(10 * time.Second), laneReread, at}}, 0},
		{"not read again", []olderLog{{at, 4, int64(9 * time.Second)}}, []laneChange{{int64(10 * time.Second), laneAssigned, at}}, 1},
		{"of a log that lost nothing", nil, []laneChange{{int64(10 * time.Second), laneReread, at}}, 1},
	} {
		ev := &evidence{older: test.older, told: map[string]told{"a": {lanes: test.lanes}}, samples: []sample{
			{ended: int64(8 * time.Second), committed: map[tp]int64{at: 7}},
			{ended: int64(12 * time.Second), committed: map[tp]int64{at: 0}},
		}}
		f := findings{rule: "rewound", counted: map[string]int{}, excluded: map[string]int{}}
		if rewound(ev, &f); len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}
