package chaos

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"
)

// A journal is the file to which a member's handlers write what they do: one line before a run
// acts, one when it ends. A line is in the file when the call returns, so the death of the process
// loses none; the disk has it syncEvery later. (To wait for the disk each time would make the disk
// the bottleneck: a lane that runs one record at a time managed 80 a second on a busy one.)
type journal struct {
	file *os.File
	runs atomic.Int64
	mu   sync.Mutex
}

const syncEvery = 100 * time.Millisecond

func openJournal(name string) (*journal, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file: f}, nil
}

// sync writes the lines to the disk until ctx ends.
func (j *journal) sync(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := j.file.Sync(); err != nil {
			fatal(err)
		}
	}
}

// append writes a line.
func (j *journal) append(line []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.file.Write(line)
	return err
}

// start writes that a run starts, and returns its number in this process.
func (j *journal) start(r run) (int64, error) {
	n := j.runs.Add(1)
	line := fmt.Appendf(nil, "S %d %d %d %s %d %d %d %d\n",
		time.Now().UnixNano(), n, r.id, r.topic, r.partition, r.offset, r.attempt, r.due)
	return n, j.append(line)
}

// end writes how a run ended, and whether the team's handler failed in it.
func (j *journal) end(n int64, v verdict, own bool) error {
	of := ""
	if own {
		of = " own"
	}
	return j.append(fmt.Appendf(nil, "E %d %d %s%s\n", time.Now().UnixNano(), n, v, of))
}

// breaker writes that the breaker of the member's topic has another state since a time.
func (j *journal) breaker(at time.Time, to string) error {
	return j.append(fmt.Appendf(nil, "B %d %s\n", at.UnixNano(), to))
}

// lane writes what happened to a lane, or to all of them.
func (j *journal) lane(at time.Time, what change, lane tp) error {
	return j.append(fmt.Appendf(nil, "L %d %s %s %d\n", at.UnixNano(), what, lane.topic, lane.partition))
}

// suspects writes which records of a feed are suspects.
func (j *journal) suspects(at time.Time, feed, partition, from, to string) error {
	return j.append(fmt.Appendf(nil, "P %d %s %s %s %s\n", at.UnixNano(), feed, partition, from, to))
}

// vitals writes how many goroutines there are, and the bytes that were live after the last
// collection of garbage.
func (j *journal) vitals(goroutines, live uint64) error {
	return j.append(fmt.Appendf(nil, "G %d %d %d\n", time.Now().UnixNano(), goroutines, live))
}

// late writes in which time a timer of the process was late.
func (j *journal) late(from, to time.Time) error {
	return j.append(fmt.Appendf(nil, "T %d %d\n", from.UnixNano(), to.UnixNano()))
}

// verdict is how a run ended.
type verdict string

const (
	verdictNone     verdict = ""       // it did not: its process died before
	verdictPassed   verdict = "passed" // handled
	verdictFailed   verdict = "failed" // retryable
	verdictTerminal verdict = "terminal"
	verdictDiscard  verdict = "discard"
	verdictPanic    verdict = "panic"
	verdictOutage   verdict = "outage" // retryable: what the handler calls was down
	verdictPart     verdict = "part"   // the same, while it was down in part, or at times
	// with an error, after its lane was taken: it does not count
	verdictDrained verdict = "drained"
)

// down reports whether what the handler calls was down.
func (v verdict) down() bool { return v == verdictOutage || v == verdictPart }

// mayStay reports whether a record may stay where it is after such a run, in a hold.
func (v verdict) mayStay() bool {
	return v == verdictFailed || v.down() || v == verdictPanic
}

// tp is a physical partition.
type tp struct {
	topic     string
	partition int32
}

// run is one call of a handler, as journals tell it.
type run struct {
	member string // who ran it
	number int64  // of the member's runs
	id     int64  // of the record

	// where the delivery was read
	topic     string
	partition int32
	offset    int64

	attempt    int
	due        int64 // milliseconds; what the copy's header says, 0 on a source
	start, end int64 // nanoseconds; end is 0 if the process died before
	verdict    verdict
	own        bool // the team's handler failed: no script says what follows
	line       int  // of the journal
	life       int  // how often the record had been redriven
	stalled    bool // it failed, and its process was suspended in its time, or got no CPU time
	lane       tp   // whose record it was: the source's partition
}

func (r *run) String() string {
	at := func(nanos int64) string { return time.Unix(0, nanos).Format("15:04:05.000000") }
	end := "did not end"
	if r.end != 0 {
		end = fmt.Sprintf("%s %s", at(r.end), r.verdict)
	}
	return fmt.Sprintf("%s.journal:%d: record %d, attempt %d, read at %s/%d/%d, %s to %s",
		r.member, r.line, r.id, r.attempt, r.topic, r.partition, r.offset, at(r.start), end)
}

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
