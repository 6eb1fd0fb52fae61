package serve

import "time"

// Criticality is how much a dead-letter topic matters to its team.
type Criticality string

// The criticalities, with the thresholds that follow from them: see [Thresholds]. Only operators
// redrive critical topics, unless the configuration lets rules do so, too. Their oldest open letter
// must have been looked at after
const (
	Critical Criticality = "critical" // at once
	High     Criticality = "high"     // 1 h
	Normal   Criticality = "normal"   // 4 h
	Low      Criticality = "low"      // a day
	Minor    Criticality = "minor"    // a week
)

// criticalities are the thresholds by criticality.
var criticalities = map[Criticality]Thresholds{
	Critical: {WarnOpen: 1, PageOpen: 1, New: 50, Oldest: time.Hour},
	High:     {WarnOpen: 10, PageOpen: 100, New: 50, Oldest: time.Hour},
	Normal:   {WarnOpen: 10, PageOpen: 100, New: 50, Oldest: 4 * time.Hour},
	Low:      {WarnOpen: 100, PageOpen: 1000, New: 500, Oldest: 24 * time.Hour},
	Minor:    {WarnOpen: 1000, PageOpen: -1, New: -1, Oldest: 7 * 24 * time.Hour},
}

// Thresholds are the limits from which the server alerts. A zero field has the default of the
// topic's criticality; a negative one switches the alert off.
type Thresholds struct {
	// WarnOpen is the number of open letters from which on the alert is a warning. Default that of
	// the criticality.
	WarnOpen int64 `yaml:"warn-open"`
	// PageOpen is the number of open letters from which on the alert pages. Default that of the
	// criticality.
	PageOpen int64 `yaml:"page-open"`
	// New is how many letters may come within five minutes. Default that of the criticality.
	New int64 `yaml:"new"`
	// Oldest is how old an open letter may be. Default that of the criticality.
	Oldest time.Duration `yaml:"oldest"`
	// NewClass is how long a class is new after its first letter. Default 24h.
	NewClass time.Duration `yaml:"new-class"`
	// Retention is the time before Kafka's retention deletes an open letter. Default 48h.
	Retention time.Duration `yaml:"retention"`
	// Held is how long a consumer group may hold records of the source back. Default 1m.
	Held time.Duration `yaml:"held"`
	// Blocked is how long records of a partition of the source may not run in a group. Default 2m.
	Blocked time.Duration `yaml:"blocked"`
	// Gone is how long a group may have no members while records wait for it. Default 5m.
	Gone time.Duration `yaml:"gone"`
}

func (t *Thresholds) check(wrong func(key, format string, args ...any)) {
	if t.WarnOpen > 0 && t.PageOpen > 0 && t.PageOpen < t.WarnOpen {
		wrong("page-open", "%d is below warn-open, %d", t.PageOpen, t.WarnOpen)
	}
}
