package trace

import (
	"bufio"
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// Told is what a journal tells.
type Told struct {
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

// ReadJournal returns what a member tells. The last line of a killed process may be cut.
func ReadJournal(member, name string) (is Told, err error) {
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
