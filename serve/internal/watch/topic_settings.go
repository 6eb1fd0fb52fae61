package watch

import "time"

// Settings are what the configuration says of a topic.
type Settings struct {
	Criticality string
	// Owner, Runbook and Note are for people; each may be empty.
	Owner, Runbook, Note string
	// ManualOnly keeps rules from redriving the topic.
	ManualOnly bool
	// Retains reports that a retention of the configuration deletes letters of the topic.
	Retains bool
	// Thresholds are the limits of the topic's alerts.
	Thresholds Thresholds
}

// Thresholds are the limits from which the server alerts; one that is not positive is switched off.
type Thresholds struct {
	// WarnOpen and PageOpen are numbers of open letters, and New is how many may come within
	// newWithin.
	WarnOpen, PageOpen, New int64
	// Oldest is how old an open letter may be.
	Oldest time.Duration
	// NewClass is how long a class is new after its first letter.
	NewClass time.Duration
	// Retention is the time before Kafka's retention deletes an open letter.
	Retention time.Duration
	// Held is how long a group may hold the source, Blocked how long records of a partition may not
	// run in a group, and Gone how long a group for which records wait may have no members.
	Held, Blocked, Gone time.Duration
}
