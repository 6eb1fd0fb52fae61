package check

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// crashLimit is the consumer's.
const crashLimit = 3

// crashLoop: of the records that kill their process, the first one of a physical partition does so
// at most crashLimit + 1 times, each further one twice; unless it is a copy that was written after
// the last death by those before it, and so the first one again. Only they are condemned. A kill
// from outside does not raise the bound: it may only make a death more of what is suspected
// already. A letter's message says no more deaths than there were, and no earlier time.
func crashLoop(ev *evidence, f *findings) {
	for _, s := range ev.services {
		for _, feed := range s.feeds {
			deathsIn(ev, feed, f)
		}
		for _, r := range s.records {
			for _, c := range r.letters {
				if c.err == nil && c.meta.Reason == headers.Reason(trace.ReasonCrashLoop) {
					f.counted["messages of crash letters"]++
					if wrong := misstated(ev, r, c); wrong != "" {
						f.add(r, c.rec, r.runs, "it says %q, and %s", c.meta.Message, wrong)
					}
				}
				switch {
				case r.script.Kills() || c.meta.Reason != headers.Reason(trace.ReasonCrashLoop):
				case ev.blamed(r, c):
					f.excluded["condemned, as its process was killed or expelled by something else"]++
				default:
					f.add(r, c.rec, r.runs, "it is a letter with reason %s, and kills nothing", trace.ReasonCrashLoop)
				}
			}
		}
	}
}

// misstated returns what the message of a crash letter has wrong, if anything. It may count the
// deaths of processes that owned the lane, and has to count those that the record's delivery has
// seen, unless they are a zombie's or the log lost its end. No death is later than it says.
func misstated(ev *evidence, r *record, c *copied) string {
	var stated int
	var at string
	const format = "at least %d processes in a row died, or lost the partition, before it was finished; the last one, by %24s"
	_, err := fmt.Sscanf(c.meta.Message, format, &stated, &at)
	by, err2 := time.Parse(time.RFC3339, at)
	if err := errors.Join(err, err2); err != nil {
		return err.Error()
	}
	if by.After(c.meta.FailedAt) {
		return "that is later than its failure"
	}
	// Within the last digit of the time that it says.
	end := by.Add(time.Millisecond).UnixNano()
	deaths := map[int64]int{} // by the delivery's offset
	some := false
	for _, x := range r.runs {
		if x.Attempt != c.meta.Attempts || x.Life != c.life() || x.End != 0 || ev.members[x.Member].Ended == 0 || ev.until(x) > end {
			continue
		}
		some = true
		if !ev.zombie(x) && !ev.readAgain(trace.TP{Topic: x.Topic, Partition: x.Partition}, 0, end) {
			deaths[x.Offset]++
		}
	}
	lane := trace.TP{Topic: r.origin.Topic, Partition: r.origin.Partition}
	left := -1 // who wrote the letter has the lane
	for _, t := range ev.journals {
		left += t.Kept(lane, end+trace.LineSlack)
	}
	least := 0
	for _, n := range deaths {
		if least == 0 || n < least {
			least = n
		}
	}
	switch {
	case stated > left:
		return fmt.Sprintf("only %d processes died, or lost the lane, by then", left)
	case stated < least:
		return fmt.Sprintf("%d processes died in its runs by then", least)
	case !some && r.script.Kills():
		return "no process had died in its runs by then"
	}
	return ""
}

// deathsIn checks how many processes the records of a physical partition killed. A record whose
// copy was written twice is two of them.
func deathsIn(ev *evidence, feed *feed, f *findings) {
	var runs []*trace.Run
	var first *delivered
	poisons, most, zombies, beside := 0, 0, 0, 0
	last := int64(math.MinInt64) // death
	for _, offset := range slices.Sorted(maps.Keys(feed.at)) {
		d := feed.at[offset]
		if d.of == nil || !d.of.script.Kills() || len(d.runs) == 0 || !d.of.script.KillsAt(d.runs[0].Attempt) {
			continue
		}
		poisons, first = poisons+1, d
		x := d.runs[0] // those before it are over, and it was none of their suspects
		fresh := x.Start > last && !ev.journals[x.Member].Suspected(x)
		if most += 2; poisons == 1 || fresh || d.copy != nil && d.copy.rec.Timestamp.UnixNano() > last {
			most += crashLimit - 1
		}
		for _, x := range d.runs {
			last = max(last, ev.until(x))
			if runs = append(runs, x); ev.zombie(x) {
				zombies++
			}
			if besideLate(ev, x) {
				beside++
			}
		}
	}
	deaths := len(runs)
	f.counted["deaths by records"] += deaths
	switch {
	case deaths <= most || poisons == 0:
	case deaths-zombies <= most:
		// What a zombie's process knew may be written over by the new owner.
		f.excluded["killed a zombie"] += deaths - most
	case deaths-beside <= most:
		// Any of the two may have killed the process.
		f.excluded["killed beside a handler that ignored its timeout"] += deaths - most
	case ev.readAgain(feed.TP, 0, math.MaxInt64):
		f.excluded["killed again, as the log lost its end and was read from its start"] += deaths - most
	default:
		f.add(first.of, first.record(), runs, "%d records of %s/%d killed %d processes, at most %d are allowed", poisons, feed.Topic, feed.Partition, deaths, most)
	}
}

// besideLate reports whether another run of its process ignored its timeout when a run began.
func besideLate(ev *evidence, x *trace.Run) bool {
	return slices.ContainsFunc(ev.journals[x.Member].Runs, func(y *trace.Run) bool { return y != x && ev.lateAt(y, x.Start) })
}

// poisonIn returns the record that killed a member, or nil.
func poisonIn(ev *evidence, m *trace.Member) *record {
	for _, r := range ev.records() {
		if r.script.Kills() && slices.ContainsFunc(r.runs, func(x *trace.Run) bool { return x.Member == m.Job.Name && r.script.KillsAt(x.Attempt) }) {
			return r
		}
	}
	return nil
}
