package chaos

import (
	"time"
)

// memberJob is what a member's process has to do.
type memberJob struct {
	Name    string
	Service service
	Seeds   []string
	User    string // to log in as; empty: none
	Dir     string
	Defect  string
	Traced  bool // its spans and its log at all levels are looked at
	// Mark is in the keys, values and headers of records. Nothing else of the process may tell it.
	Mark string
	// Skew is by how much the clock of the member's host is fast. What it reads is moved instead of
	// the clock.
	Skew time.Duration
}

func (j memberJob) journal() string { return j.Dir + "/" + j.Name + ".journal" }

func (j memberJob) metrics() string { return j.Dir + "/" + j.Name + ".metrics.json" }

func (j memberJob) leaks() string { return j.Dir + "/" + j.Name + ".leaks.json" }

func (j memberJob) log() string { return j.Dir + "/" + j.Name + ".log" }

// outageFile is the file that is there while what the handlers of a group call is down.
func outageFile(dir, group string) string { return dir + "/" + group + ".outage" }

// measured is what a member's metrics say at its end: sums and counts, by name and the attributes
// that matter.
type measured map[string]int64

// facts are what was done to a member, and what became of it. Times are in nanoseconds.
type facts struct {
	job       memberJob
	service   int // by its place among those of the run
	began     int64
	ended     int64 // 0: never
	killed    bool
	toEnd     bool  // it was asked to end
	termed    int64 // when it was asked to end in order
	suspended [][2]int64
	err       error // with which its process ended
}
