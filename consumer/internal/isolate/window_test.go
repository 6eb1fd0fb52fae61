package isolate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

func newWindow(tier bool, at Start) Window {
	set := Settings{CrashLimit: 3, Interval: time.Second, Tier: tier, Ask: func() {}, Rests: func() bool { return false }, Now: time.Now}
	return New(set, at)
}

// What one commit allowed may still start when the next one is made, however little ran since. So
// the next one names it as well: else a record that kills would be no suspect.
func TestWindow_NamesAllThatMayStart(t *testing.T) {
	t.Parallel()
	w := newWindow(false, Start{Process: 1, End: -1})
	tracker, now, at := offsets.New(0, 0), time.Now(), int64(0)
	for i, n := range []int64{0, 60, 500, 5, 0, 3, 2000, 1} {
		at += n
		if n > 0 {
			w.Begin(int(n), at-1)
		}
		allowed := w.until
		e := w.Evidence(1, &tracker, -1, now, false)
		if e.Until < allowed || e.Until < at {
			t.Errorf("commit %d names the records below %d, while those below %d may start and those below %d have", i, e.Until, allowed, at)
		}
		w.Accept(e, w.Asked())
		now = now.Add(time.Second)
	}
}

// Only who died is charged with the record that ran alone: a lane that starts again in the same
// process has seen no death. What a later leader wrote is another record, the first one included.
func TestWindow_ChargesTheDeadOnly(t *testing.T) {
	t.Parallel()
	for self, condemned := range map[uint64]bool{1: false, 2: true} {
		said := offsets.Evidence{Process: 1, Deaths: 2, Suspect: 8, Until: 8, Alone: &offsets.Alone{Offset: 5}}
		w := newWindow(false, Start{Evidence: said, Process: self, End: -1, Epoch: 4})
		if _, got := w.Suspects().Condemns(5); got != condemned {
			t.Errorf("process %d starts where process 1 ran a record alone: it is condemned: %v, want %v", self, got, condemned)
		}
		w.Suspects().Read(5, 5)
		if _, got := w.Suspects().Condemns(5); got {
			t.Error("the first record of a later leader is condemned")
		}
	}
}

// No record of a source overtakes suspects. Those of a tier may wait for hours until they are due,
// and hold up none.
func TestWindow_SuspectsOfATierHoldUpNoOther(t *testing.T) {
	t.Parallel()
	for _, tier := range []bool{false, true} {
		w := newWindow(tier, Start{Evidence: offsets.Evidence{Deaths: 2, Suspect: 5}, Process: 1, End: -1})
		w.Accept(offsets.Evidence{Until: 10}, w.Asked())
		if got := w.MayStart(7); got != tier {
			t.Errorf("of a tier: %v, and a record behind the suspects may start: %v", tier, got)
		}
	}
}

// A lane that outruns its commits needs few of them: what was fetched for it waits for each. A slow
// lane's commit names what runs until the next ones, or twice as many while its handlers run.
func TestWindow_OutrunCommitsNameManyMore(t *testing.T) {
	t.Parallel()
	const records = 4000
	for _, c := range []struct {
		finished bool          // all that started has finished when a commit is made
		took     time.Duration // from their start until that commit
		commits  int
	}{{true, 10 * time.Millisecond, 2}, {true, 500 * time.Millisecond, 4}, {false, 10 * time.Millisecond, 6}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWindow(false, Start{Process: 1, End: -1})
			tracker, n := offsets.New(0, 0), 0
			for tracker.DeliverRange(0, records-1); w.until < records; n++ {
				if w.until > 0 {
					time.Sleep(300 * time.Millisecond) // idle, which is no pace
					w.Begin(int(w.until-w.begun), w.until-1)
				}
				time.Sleep(c.took)
				if c.finished {
					tracker.FinishRange(0, w.until-1)
				}
				w.Accept(w.Evidence(1, &tracker, -1, time.Now(), false), w.Asked())
			}
			if n != c.commits {
				t.Errorf("finished when a commit is made: %v, after %v; %d commits name %d records, want %d", c.finished, c.took, n, records, c.commits)
			}
		})
	}
}

// Who reads what a commit said counts a death if a record may have run since, and no record beyond
// the log's end. Suspects run in groups once one death less than the limit allows has happened.
func TestWindow_StartsFromWhatACommitSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at       Start
		deaths   int // 0: no suspects
		suspect  int64
		isolated bool
	}{
		"a first death":               {Start{Evidence: offsets.Evidence{Process: 2, Until: 64}, End: 100}, 1, 64, false},
		"the log ends before":         {Start{Evidence: offsets.Evidence{Process: 2, Until: 64}, End: 20}, 1, 20, false},
		"its end is unknown":          {Start{Evidence: offsets.Evidence{Process: 2, Until: 64}, End: -1}, 1, 64, false},
		"nothing could run":           {Start{Evidence: offsets.Evidence{Process: 2, Deaths: 1, Suspect: 70, Until: 50}, Floor: 60, End: 100}, 1, 70, false},
		"a second death":              {Start{Evidence: offsets.Evidence{Process: 2, Deaths: 1, Suspect: 70, Until: 90}, End: 100}, 2, 90, true},
		"all have finished":           {Start{Evidence: offsets.Evidence{Process: 2, Deaths: 2, Suspect: 60}, Floor: 60, End: 100}, 0, 0, false},
		"it ran some one by one":      {Start{Evidence: offsets.Evidence{Suspect: 9, Singly: []offsets.Span{{First: 4, Last: 6}}}, Floor: 5, End: 100}, 0, 9, true},
		"it had run these one by one": {Start{Evidence: offsets.Evidence{Suspect: 9, Singly: []offsets.Span{{First: 4, Last: 4}}}, Floor: 5, End: 100}, 0, 9, false},
	} {
		c.at.Process = 1
		w := newWindow(false, c.at)
		s := w.Suspects()
		if (s == nil) != (c.suspect == 0) || s != nil && (s.Deaths != c.deaths || s.Suspect != c.suspect || s.IsIsolated() != c.isolated) {
			t.Errorf("%s: suspects are %+v", name, s)
		}
	}
}

// A unit ends before a record that must not run, or may not yet. One that must not run is a unit.
func TestWindow_PrefixEndsBeforeWhatMayNotRun(t *testing.T) {
	t.Parallel()
	said := offsets.Evidence{Deaths: 2, Suspect: 9, Condemned: []offsets.Alone{{Offset: 3}}}
	w := newWindow(false, Start{Evidence: said, Process: 1, End: -1})
	var recs []*kgo.Record
	for offset := range int64(12) {
		recs = append(recs, &kgo.Record{Offset: offset})
	}
	w.Suspects().Hand([]offsets.Span{{Last: 5}})
	for from, want := range map[int]int{0: 3, 3: 1, 4: 2} {
		if n := w.Prefix(recs[from:]); n != want {
			t.Errorf("%d records from %d on are a unit, want %d", n, from, want)
		}
	}
}

// Beyond what a commit named nothing starts, unless commits rest. Of isolated suspects, a commit
// bounds what it lets start. One that hands over says that nothing runs, alone or else; what its
// process knows goes on.
func TestWindow_CommitsBoundWhatStarts(t *testing.T) {
	t.Parallel()
	w, tracker := newWindow(false, Start{Process: 1, End: -1}), offsets.New(0, 0)
	tracker.DeliverRange(0, 99)
	w.Accept(offsets.Evidence{Until: 10}, w.Asked())
	for _, rests := range []bool{false, true} {
		if w.set.Rests = func() bool { return rests }; !w.MayStart(9) || w.MayStart(10) != rests {
			t.Errorf("commits rest: %v, and record 10 may start: %v", rests, w.MayStart(10))
		}
	}
	if w.SetOnly(true); w.MayStart(9) || w.IsNamed(9) {
		t.Error("a record may start while another one of its lane runs alone")
	}
	w = newWindow(false, Start{Evidence: offsets.Evidence{Deaths: 2, Suspect: 50}, Process: 1, End: -1})
	w.Suspects().Name([]offsets.Span{{First: 2, Last: 4}})
	w.Suspects().NameAlone(&offsets.Alone{Offset: 7})
	if e := w.Evidence(1, &tracker, 0, time.Now(), false); e.Until != 8 || e.Alone == nil || !offsets.In(e.Singly, 4) {
		t.Errorf("beside suspects, the commit says %+v", e)
	}
	if e := w.Suspects().Inherit(1); e.Alone != nil || !offsets.In(e.Singly, 7) || !offsets.In(e.Singly, 4) || e.Suspect != 50 {
		t.Errorf("a lane that replaces it begins with %+v", e)
	}
	if e := w.Evidence(1, &tracker, 0, time.Now(), true); e.Until != 0 || e.Alone != nil || e.Suspect != 50 {
		t.Errorf("the commit that hands over says %+v", e)
	}
}
