package trace

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Journal is the file to which a member's handlers write what they do: one line before a run
// acts, one when it ends. A line is in the file when the call returns, so the death of the process
// loses none; the disk has it syncEvery later. (To wait for the disk each time would make the disk
// the bottleneck: a lane that runs one record at a time managed 80 a second on a busy one.)
type Journal struct {
	file *os.File
	runs atomic.Int64
	mu   sync.Mutex
}

const syncEvery = 100 * time.Millisecond

// OpenJournal opens the file, which may be there.
func OpenJournal(name string) (*Journal, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{file: f}, nil
}

// Sync writes the lines to the disk until ctx ends.
func (j *Journal) Sync(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := j.file.Sync(); err != nil {
			Fatal(err)
		}
	}
}

// append writes a line.
func (j *Journal) append(line []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.file.Write(line)
	return err
}

// Start writes that a run starts, and returns its number in this process.
func (j *Journal) Start(r Run) (int64, error) {
	n := j.runs.Add(1)
	line := fmt.Appendf(nil, "S %d %d %d %s %d %d %d %d\n",
		time.Now().UnixNano(), n, r.ID, r.Topic, r.Partition, r.Offset, r.Attempt, r.Due)
	return n, j.append(line)
}

// End writes how a run ended, and whether the team's handler failed in it.
func (j *Journal) End(n int64, v Verdict, own bool) error {
	of := ""
	if own {
		of = " own"
	}
	return j.append(fmt.Appendf(nil, "E %d %d %s%s\n", time.Now().UnixNano(), n, v, of))
}

// Breaker writes that the breaker of the member's topic has another state since a time.
func (j *Journal) Breaker(at time.Time, to string) error {
	return j.append(fmt.Appendf(nil, "B %d %s\n", at.UnixNano(), to))
}

// lane writes what happened to a lane, or to all of them.
func (j *Journal) lane(at time.Time, what Change, lane TP) error {
	return j.append(fmt.Appendf(nil, "L %d %s %s %d\n", at.UnixNano(), what, lane.Topic, lane.Partition))
}

// suspects writes which records of a feed are suspects.
func (j *Journal) suspects(at time.Time, feed, partition, from, to string) error {
	return j.append(fmt.Appendf(nil, "P %d %s %s %s %s\n", at.UnixNano(), feed, partition, from, to))
}

// Vitals writes how many goroutines there are, and the bytes that were live after the last
// collection of garbage.
func (j *Journal) Vitals(goroutines, live uint64) error {
	return j.append(fmt.Appendf(nil, "G %d %d %d\n", time.Now().UnixNano(), goroutines, live))
}

// Late writes in which time a timer of the process was late.
func (j *Journal) Late(from, to time.Time) error {
	return j.append(fmt.Appendf(nil, "T %d %d\n", from.UnixNano(), to.UnixNano()))
}

// A process looks at a timer each LookEvery, and logs when it was late by LateBy or more.
const (
	LookEvery = 50 * time.Millisecond
	LateBy    = 100 * time.Millisecond
)

// Fatal ends a member that can no longer log what it does, as one that cannot begin.
func Fatal(err error) {
	fmt.Fprintln(os.Stderr, "chaos: the journal cannot be written:", err)
	os.Exit(2)
}
