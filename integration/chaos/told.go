package chaos

import (
	"bufio"
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// told is what a journal tells.
type told struct {
	runs     []*run // in the order of their starts
	breakers []breakerState
	lanes    []laneChange // in the order of their times
	suspects []suspects
	vitals   []vitals
	late     [][2]int64 // when timers of the process were late, in order
}

// breakerState is the state of a member's breaker from a time on.
type breakerState struct {
	at int64 // nanoseconds
	to string
}

// vitals are the sizes of a process at a time.
type vitals struct {
	at               int64 // nanoseconds
	goroutines, live int64 // live is in bytes
}

// readJournal returns what a member tells. The last line of a killed process may be cut.
func readJournal(member, name string) (is told, err error) {
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return is, nil // killed before it began
	}
	if err != nil {
		return is, err
	}
	defer f.Close()
	byNumber := map[int64]*run{}
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
			r := &run{
				member: member, line: n, start: numbers[1], number: numbers[2], id: numbers[3],
				topic: same(field[4]), partition: int32(numbers[5]), offset: numbers[6], attempt: int(numbers[7]), due: numbers[8],
			}
			is.runs = append(is.runs, r)
			byNumber[r.number] = r
		case (len(field) == 4 || len(field) == 5) && field[0] == "E":
			if r := byNumber[numbers[2]]; r != nil {
				r.end, r.verdict, r.own = numbers[1], verdict(same(field[3])), len(field) == 5
			}
		case len(field) == 3 && field[0] == "B":
			is.breakers = append(is.breakers, breakerState{numbers[1], field[2]})
		case len(field) == 5 && field[0] == "L":
			is.lanes = append(is.lanes, laneChange{numbers[1], change(field[2]), tp{field[3], int32(numbers[4])}})
		case len(field) == 6 && field[0] == "P":
			is.suspects = append(is.suspects, suspects{numbers[1], tp{field[2], int32(numbers[3])}, numbers[4], numbers[5]})
		case len(field) == 3 && field[0] == "T":
			is.late = append(is.late, [2]int64{numbers[1], numbers[2]})
		case len(field) == 4 && field[0] == "G":
			is.vitals = append(is.vitals, vitals{numbers[1], numbers[2], numbers[3]})
		}
	}
	// Two goroutines may write their lines in another order than they took their times.
	slices.SortStableFunc(is.lanes, func(a, b laneChange) int { return cmp.Compare(a.at, b.at) })
	return is, lines.Err()
}

// change is what happened to a lane.
type change string

const (
	laneAssigned  change = "assigned"
	laneRestarted change = "restarted" // from where it was, or from where its log was cut
	laneReread    change = "reread"    // from the log's start: the log was taken for another one
	// All handlers returned, and what they finished was committed.
	laneHandedOver change = "handed-over"
	// The lane ended, and a handler was cut off or a commit failed; or the membership was lost.
	laneEnded change = "ended"
)

// begins reports whether a lane is another one since.
func (c change) begins() bool { return c == laneAssigned || c == laneRestarted || c == laneReread }

// everyLane stands for all lanes of a process.
var everyLane = tp{"*", -1}

// laneChange is what happened to a lane at a time.
type laneChange struct {
	at   int64 // nanoseconds
	what change
	lane tp // of its source
}

// suspects are records of a feed that run in groups or one by one.
type suspects struct {
	at       int64 // nanoseconds
	feed     tp
	from, to int64 // offsets; to is behind the last one
}
