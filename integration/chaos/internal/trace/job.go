package trace

import (
	"time"
)

// Job is what a member's process has to do.
type Job struct {
	Name    string
	Service Service
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

// Journal is the name of the file that the member writes, as are the following.
func (j Job) Journal() string { return j.Dir + "/" + j.Name + ".journal" }

// Metrics has what its metrics said at its end.
func (j Job) Metrics() string { return j.Dir + "/" + j.Name + ".metrics.json" }

// Leaks has the parts of records that were found in what it told.
func (j Job) Leaks() string { return j.Dir + "/" + j.Name + ".leaks.json" }

// Log has what it logged, and its standard error.
func (j Job) Log() string { return j.Dir + "/" + j.Name + ".log" }

// OutageFile is the file that is there while what the handlers of a group call is down.
func OutageFile(dir, group string) string { return dir + "/" + group + ".outage" }
