package isolate

import (
	"testing"
	"testing/synctest"
	"time"

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
