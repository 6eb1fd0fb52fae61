package trace

import (
	"bufio"
	"cmp"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"
)

// Logged is what a journal has.
type Logged struct {
	Runs     []*Run // in the order of their starts
	Breakers []BreakerState
	Lanes    []LaneChange // in the order of their times
	Suspects []Suspects
	Vitals   []Vitals
	late     [][2]int64 // when timers of the process were late, in order
}

// BreakerState is the state of a member's breaker from a time on.
type BreakerState struct {
	At int64 // nanoseconds
	To string
}

// Vitals are the sizes of a process at a time.
type Vitals struct {
	At               int64 // nanoseconds
	Goroutines, Live int64 // live is in bytes
}

// ReadJournal returns what a member logged. The last line of a killed process may be cut.
func ReadJournal(member, name string) (is Logged, err error) {
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return is, nil // killed before it began
	}
	if err != nil {
		return is, err
	}
	defer f.Close()
	byNumber := map[int64]*Run{}
	// keeps no whole line
	same := func(part string) string { return unique.Make(part).Value() }
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		field := strings.Fields(lines.Text())
		numbers := make([]int64, len(field))
		for i, text := range field {
			numbers[i], _ = strconv.ParseInt(text, 10, 64) // 0 for those that are texts
		}
		switch {
		case len(field) == 9 && field[0] == "S":
			r := &Run{
				Member: member, line: n, Start: numbers[1], number: numbers[2], ID: numbers[3],
				Topic: same(field[4]), Partition: int32(numbers[5]), Offset: numbers[6], Attempt: int(numbers[7]), Due: numbers[8],
			}
			is.Runs = append(is.Runs, r)
			byNumber[r.number] = r
		case (len(field) == 4 || len(field) == 5) && field[0] == "E":
			if r := byNumber[numbers[2]]; r != nil {
				r.End, r.Verdict, r.Own = numbers[1], Verdict(same(field[3])), len(field) == 5
			}
		case len(field) == 3 && field[0] == "B":
			is.Breakers = append(is.Breakers, BreakerState{numbers[1], field[2]})
		case len(field) == 5 && field[0] == "L":
			is.Lanes = append(is.Lanes, LaneChange{numbers[1], Change(field[2]), TP{field[3], int32(numbers[4])}})
		case len(field) == 6 && field[0] == "P":
			is.Suspects = append(is.Suspects, Suspects{numbers[1], TP{field[2], int32(numbers[3])}, numbers[4], numbers[5]})
		case len(field) == 3 && field[0] == "T":
			is.late = append(is.late, [2]int64{numbers[1], numbers[2]})
		case len(field) == 4 && field[0] == "G":
			is.Vitals = append(is.Vitals, Vitals{numbers[1], numbers[2], numbers[3]})
		}
	}
	// Two goroutines may write their lines in another order than they took their times.
	slices.SortStableFunc(is.Lanes, func(a, b LaneChange) int { return cmp.Compare(a.At, b.At) })
	return is, lines.Err()
}

// Change is what happened to a lane.
type Change string

// What happens to lanes.
const (
	LaneAssigned  Change = "assigned"
	LaneRestarted Change = "restarted" // from where it was, or from where its log was cut
	LaneReread    Change = "reread"    // from the log's start: the log was taken for another one
	// All handlers returned, and what they finished was committed.
	LaneHandedOver Change = "handed-over"
	// The lane ended, and a handler was cut off or a commit failed; or the membership was lost.
	LaneEnded Change = "ended"
)

// Begins reports whether a lane is another one since.
func (c Change) Begins() bool { return c == LaneAssigned || c == LaneRestarted || c == LaneReread }

// EveryLane stands for all lanes of a process.
var EveryLane = TP{"*", -1}

// LaneChange is what happened to a lane at a time.
type LaneChange struct {
	At   int64 // nanoseconds
	What Change
	Lane TP // of its source
}

// Suspects are records of a feed that run in groups or one by one.
type Suspects struct {
	At       int64 // nanoseconds
	Feed     TP
	From, To int64 // offsets; to is behind the last one
}

// StateAt returns the state of a member's breaker at a time, and since when it has it.
func (t Logged) StateAt(at int64) BreakerState {
	n, _ := slices.BinarySearchFunc(t.Breakers, at, func(b BreakerState, at int64) int {
		return cmp.Or(cmp.Compare(b.At, at), -1)
	})
	if n == 0 {
		return BreakerState{To: "closed"}
	}
	return t.Breakers[n-1]
}

// Opened reports whether the breaker was open in some part of a time: a failed probe is no attempt,
// and a record that waits in place returns to its feed.
func (t Logged) Opened(from, to int64) bool {
	return t.StateAt(from).To == "held" || slices.ContainsFunc(t.Breakers, func(b BreakerState) bool { return b.To == "held" && b.At >= from && b.At <= to })
}

// LineSlack is how long after the line about a restart the old lane may start a record.
const LineSlack = int64(time.Second)

// Changes returns what happened to a lane from one time to another, both included.
func (t Logged) Changes(lane TP, from, to int64) (all []LaneChange) {
	n, _ := slices.BinarySearchFunc(t.Lanes, from, func(c LaneChange, at int64) int { return cmp.Compare(c.At, at) })
	for _, c := range t.Lanes[n:] {
		if c.At > to {
			break
		}
		if c.Lane == lane || c.Lane == EveryLane {
			all = append(all, c)
		}
	}
	return all
}

// Renewed reports whether a lane began anew between the starts of two runs.
func (t Logged) Renewed(lane TP, from, to int64) bool {
	return slices.ContainsFunc(t.Changes(lane, from-LineSlack, to), func(c LaneChange) bool { return c.What.Begins() })
}

// BegunBy returns when the lane began that ran records at a time; 0 if the journal does not say.
func (t Logged) BegunBy(lane TP, at int64) (began int64) {
	for _, c := range t.Changes(lane, 0, at) {
		if c.What.Begins() {
			began = c.At
		}
	}
	return began
}

// LostLast returns when the process, which may have ended, last lost a lane; 0 if never.
func (t Logged) LostLast(lane TP, before, ended int64) (last int64) {
	owned := false
	for _, c := range append(t.Changes(lane, 0, before), LaneChange{At: ended}) {
		if owned && c.At < before {
			last = max(last, c.At)
		}
		owned = c.What.Begins()
	}
	return last
}

// Kept returns how many of a partition's lanes, begun by a time, were not handed over in order.
func (t Logged) Kept(lane TP, by int64) (n int) {
	owned := false
	for _, c := range t.Changes(lane, 0, by) {
		if owned && c.What != LaneHandedOver {
			n++
		}
		owned = c.What.Begins()
	}
	if owned {
		n++
	}
	return n
}

// HandedOver returns when the lane was handed over in order that a run began and ended in; ok is
// false if it had another end, or none. If the membership is lost as a drain ends, both ends are
// logged.
func (t Logged) HandedOver(r *Run) (at int64, ok bool) {
	changes := t.Changes(r.Lane, r.Start-LineSlack, math.MaxInt64)
	for i, c := range changes {
		switch {
		case c.At < r.Start && (c.What == LaneRestarted || c.What == LaneReread):
			return 0, false // the run may be of the lane before
		case c.At >= r.Start:
			lost := i+1 < len(changes) && changes[i+1].What == LaneEnded
			return c.At, c.What == LaneHandedOver && r.End != 0 && c.At >= r.End && !lost
		}
	}
	return 0, false
}

// Suspected reports whether a run was of a suspect. A lane that begins anew forgets its suspects.
func (t Logged) Suspected(r *Run) bool {
	return slices.ContainsFunc(t.Suspects, func(s Suspects) bool {
		return s.Feed == TP{r.Topic, r.Partition} && s.From <= r.Offset && r.Offset < s.To && s.At <= r.Start+LineSlack &&
			(s.At > r.Start || !slices.ContainsFunc(t.Changes(r.Lane, s.At, r.Start), func(c LaneChange) bool { return c.What.Begins() }))
	})
}

// Starved reports whether the member's timers were late for so long in a time.
func (t *Logged) Starved(from, to int64, least time.Duration) bool {
	return Overlap(t.late, from, to) >= least
}

// Overlap is how much of a time lies in others, which do not overlap.
func Overlap(others [][2]int64, from, to int64) (sum time.Duration) {
	for _, o := range others {
		sum += time.Duration(max(0, min(o[1], to)-max(o[0], from)))
	}
	return sum
}
