package api

import "time"

// Topic is a dead-letter topic.
type Topic struct {
	Topic       string `json:"topic" doc:"Name of the dead-letter topic."`
	Source      string `json:"source" doc:"Topic whose records failed."`
	Criticality string `json:"criticality" doc:"What the topic means to its team." enum:"critical,high,normal,low,minor"`
	Owner       string `json:"owner,omitempty" doc:"Who looks after the topic, by the server's configuration."`
	Runbook     string `json:"runbook,omitempty" doc:"URL of what to do about its letters." format:"uri"`
	Note        string `json:"note,omitempty" doc:"What whoever is on call should know."`
	// Known is when the numbers below were read; null while the topic is read for the first time.
	Known      *time.Time `json:"known" doc:"When the numbers were read; null while the topic is read for the first time."`
	Unread     int64      `json:"unread" doc:"Offsets that are still to be read; the numbers lack these."`
	Problem    string     `json:"problem,omitempty" doc:"Why not all is known of the topic, or done about it."`
	Unnotified []string   `json:"unnotified,omitempty" doc:"Which receivers were not notified of an incident, and why: the message was given up."`
	Open       int64      `json:"open" doc:"Open letters."`
	Pending    int64      `json:"pending" doc:"Letters that were redriven and have no outcome yet."`
	Resolved   int64      `json:"resolved" doc:"Resolved letters that are still in the topic."`
	Duplicates int64      `json:"duplicates" doc:"Copies of other letters."`
	Recent     int64      `json:"recent" doc:"Letters that came within the last five minutes."`
	Oldest     *time.Time `json:"oldest" doc:"When the oldest open letter was written."`
	Newest     *time.Time `json:"newest" doc:"When the newest open letter was written."`
	TopClass   string     `json:"topClass,omitempty" doc:"Class with the most open letters."`
	ManualOnly bool       `json:"manualOnly" doc:"No rule redrives the topic, only operators do."`
	Run        string     `json:"run,omitempty" doc:"Id of a run that is not finished."`
	Guards     []Guard    `json:"guards" doc:"Consumer groups that hold records of the source back, or run them in a strain: those that hold it first."`
	Stalled    []Stalled  `json:"stalled" doc:"Other consumer groups of the source that need somebody, such as one without members, or with partitions that are blocked: the twenty with the largest lag."`
}

// Guard is what a consumer group's commits say of the guard of a source.
type Guard struct {
	Group string    `json:"group" doc:"Consumer group."`
	State string    `json:"state" enum:"held,strained" doc:"Held: no record runs, but for probes. Strained: records run, and failures cost no attempt."`
	Since time.Time `json:"since" doc:"When it began, by the clock of the group's process."`
	Class string    `json:"class,omitempty" doc:"Class of most failures; its first 24 bytes."`
	// Partitions and Of are numbers of the source's partitions.
	Partitions int    `json:"partitions" doc:"Partitions of the source that are held or strained."`
	Of         int    `json:"of" doc:"Partitions of the source."`
	Waiting    *int64 `json:"waiting" doc:"Records that wait in those partitions, markers of transactions included; null if that is not known."`
}

// Group is the open letters of one class and fingerprint.
type Group struct {
	Class       string    `json:"class"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Open        int64     `json:"open" doc:"Open letters."`
	First       time.Time `json:"first" doc:"When the first of them failed."`
	Last        time.Time `json:"last" doc:"When the last of them failed."`
	New         bool      `json:"new" doc:"The class was not seen before the last day."`
	FailedAgain int64     `json:"failedAgain" doc:"Letters of the group that were redriven and failed again."`
	Groups      []string  `json:"groups" doc:"Consumer groups that failed so."`
	Versions    []string  `json:"versions" doc:"Versions of their services."`
	Reasons     []string  `json:"reasons" doc:"Reasons of the letters."`
	Sample      string    `json:"sample,omitempty" doc:"Message of one of the letters."`
	Partition   int32     `json:"partition" doc:"Partition of that letter."`
	Offset      int64     `json:"offset" doc:"Offset of that letter."`
	FirstSeen   FirstSeen `json:"firstSeen" doc:"Letter of the class and fingerprint that failed first, of those that the server read: open or not, whatever times the filter selects."`
}

// FirstSeen is a letter, who failed it and where in the code.
type FirstSeen struct {
	At        time.Time `json:"at" doc:"When it failed."`
	Host      string    `json:"host,omitempty" doc:"Host of the consumer that failed it."`
	Version   string    `json:"version,omitempty" doc:"Version of its service."`
	Frame     string    `json:"frame,omitempty" doc:"Function and line where it failed, such as billing.Charge, fx.go:118; absent for an error without a stack."`
	Partition int32     `json:"partition" doc:"Partition of the letter."`
	Offset    int64     `json:"offset" doc:"Offset of the letter."`
}

// Class is the open letters of one class.
type Class struct {
	Class       string    `json:"class" doc:"Empty for letters without a class."`
	Open        int64     `json:"open" doc:"Open letters."`
	First       time.Time `json:"first" doc:"When the first of them failed."`
	Last        time.Time `json:"last" doc:"When the last of them failed."`
	New         bool      `json:"new" doc:"The class was not seen before the last day."`
	FailedAgain int64     `json:"failedAgain" doc:"Letters of the class that were redriven and failed again."`
	FirstSeen   FirstSeen `json:"firstSeen" doc:"The first of firstSeen of its groups."`
	Groups      []Group   `json:"groups" doc:"The letters by fingerprint, the most first."`
}

// Letter is a dead letter in a list.
type Letter struct {
	Partition   int32     `json:"partition"`
	Offset      int64     `json:"offset"`
	State       string    `json:"state" doc:"Empty for an open letter without an entry in the ledger."`
	FailedAt    time.Time `json:"failedAt" doc:"When the record last failed."`
	EnteredAt   time.Time `json:"enteredAt" doc:"When the letter was written."`
	Class       string    `json:"class,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Group       string    `json:"group,omitempty"`
	Version     string    `json:"version,omitempty" doc:"Version of the service that failed."`
	Dialect     string    `json:"dialect,omitempty" doc:"How another program wrote the letter, such as spring; absent if siding wrote it, or no dialect is known."`
}

// Letters is a page of letters, the newest first.
type Letters struct {
	Letters []Letter `json:"letters"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last one."`
	// Examined is how many letters were read for the page, if the filter took reading them.
	Examined int    `json:"examined,omitempty" doc:"Letters that were read for this page, if the filter takes reading them. The work for a page is bounded: it may be short, and even empty, though there is a next one."`
	Problem  string `json:"problem,omitempty" doc:"On how many letters where failed, and the first of them. They are not selected."`
}
