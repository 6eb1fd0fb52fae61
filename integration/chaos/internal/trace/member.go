package trace

import (
	"slices"
	"time"
)

// Measured is what a member's metrics say at its end: sums and counts, by name and the attributes
// that matter.
type Measured map[string]int64

// Member is what was done to a member, and what became of it. Times are in nanoseconds.
type Member struct {
	Job       Job
	Service   int // by its place among those of the run
	Began     int64
	Ended     int64 // 0: never
	Killed    bool
	Asked     bool  // it was asked to end
	Termed    int64 // when it was asked to end in order
	Suspended [][2]int64
	Err       error // with which its process ended
}

// StoodStill reports whether the member was suspended in some part of a time.
func (m *Member) StoodStill(from, to int64) bool {
	return slices.ContainsFunc(m.Suspended, func(s [2]int64) bool { return s[0] < to && s[1] > from })
}

// Job is what a member's process has to do.
type Job struct {
	Name    string
	Service Service
	Seeds   []string
	User    string // to log in as; empty: none
	Dir     string
	Defect  string
	Traced  bool // its spans and its log at all levels are looked at
	// Mark is in the keys, values and headers of records. Nothing else that the process writes may
	// have it.
	Mark string
	// Skew is by how much the clock of the member's host is fast. What it reads is moved instead of
	// the clock.
	Skew time.Duration
}

// Journal is the name of the file that the member writes, as are the following.
func (j Job) Journal() string { return j.Dir + "/" + j.Name + ".journal" }

// Metrics has what its metrics said at its end.
func (j Job) Metrics() string { return j.Dir + "/" + j.Name + ".metrics.json" }

// Leaks has the parts of records that were found in what it wrote.
func (j Job) Leaks() string { return j.Dir + "/" + j.Name + ".leaks.json" }

// Log has what it logged, and its standard error.
func (j Job) Log() string { return j.Dir + "/" + j.Name + ".log" }

// OutageFile is the file that is there while what the handlers of a group call is down.
func OutageFile(dir, group string) string { return dir + "/" + group + ".outage" }

// Leaks are parts of records that a member wrote.
type Leaks struct {
	Shown map[string]int // texts that were looked at, by their kinds
	Found []string
}

// LeakKinds are the kinds of texts that are looked at.
var LeakKinds = []string{"log", "span", "metric"}
