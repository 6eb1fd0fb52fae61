package api

import (
	"encoding/json"
	"time"
)

// RunRequest begins a run of the letters that a filter selects.
type RunRequest struct {
	Filter Filter `json:"filter,omitempty" doc:"Which of the open letters; all, if it is empty."`
	// Expect guards against letters that came since the caller looked.
	Expect *int64 `json:"expect,omitempty" minimum:"0" doc:"Number of letters that the run is to have. With another number nothing is done."`
	RunOptions
}

// RunOptions are what a run does with its letters.
type RunOptions struct {
	Why         string `json:"why,omitempty" maxLength:"4096" doc:"Reason for the redrive, for the ledger; 4,096 bytes at most."`
	Target      Target `json:"target,omitempty" doc:"Where the letters go; the failing group's first retry topic, if it is empty."`
	MaxRedrives int    `json:"maxRedrives,omitempty" minimum:"-1" doc:"How often one record may be redriven, over all runs; 3 if it is 0, without a limit if it is -1."`
	MaxAttempts int    `json:"maxAttempts,omitempty" minimum:"0" maximum:"1000000" doc:"Attempts after which a copy that fails is a dead letter again, at most 100; also more than the consumer's policy allows. A topic without retry topics has one attempt."`
	Edit        Edit   `json:"edit,omitempty" doc:"What the copies have changed."`
	Pace        Pace   `json:"pace,omitempty" doc:"Speed of the run, and the limits at which it aborts itself."`
}

// Target is where redriven letters go.
type Target struct {
	Topic         string `json:"topic,omitempty" maxLength:"249" doc:"Another topic. All groups that read it see the records."`
	Wait          bool   `json:"wait,omitempty" doc:"Wait for members if the group has none."`
	Force         bool   `json:"force,omitempty" doc:"Redrive to a compacted target, and to a source whose retry topics seem to have other names."`
	KeepTimestamp bool   `json:"keepTimestamp,omitempty" doc:"Give the copies the original records' timestamps."`
}

// Edit changes the copies of redriven letters. The letters stay as they are.
type Edit struct {
	SetHeaders   []SetHeader     `json:"setHeaders,omitempty" maxItems:"1000" doc:"Each replaces all headers of its key."`
	UnsetHeaders []string        `json:"unsetHeaders,omitempty" maxItems:"1000" doc:"Keys of headers to remove."`
	Patch        json.RawMessage `json:"patch,omitempty" doc:"JSON merge patch (RFC 7396) for the value, an object."`
	Value        *NewBytes       `json:"value,omitempty" doc:"New value, for a run of one letter."`
}

// SetHeader is a header to set.
type SetHeader struct {
	Key   string   `json:"key" minLength:"1"`
	Value NewBytes `json:"value"`
}

// NewBytes are bytes to write: text, or base64 of what is not UTF-8.
type NewBytes struct {
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"base64,omitempty" doc:"In place of text."`
}

// Pace sets the speed of a run. A field that is 0 has its default.
type Pace struct {
	Rate          float64 `json:"rate,omitempty" doc:"Records a second; 50 by default, without a limit if it is negative."`
	Burst         int     `json:"burst,omitempty" minimum:"0" doc:"Letters that may be sent at once; a tenth of the rate by default."`
	Canary        int     `json:"canary,omitempty" doc:"Letters that are sent first, and whose outcomes the others await; 1 by default, none if it is negative."`
	Tolerate      int     `json:"tolerate,omitempty" doc:"Failures that the run tolerates; none by default."`
	TolerateShare float64 `json:"tolerateShare,omitempty" maximum:"1" doc:"Share of failures that the run tolerates among the last 50 letters; 0.1 by default, none if it is negative."`
	RampMs        int64   `json:"rampMs,omitempty" doc:"Time from a tenth of the rate to all of it; 30,000 by default, none if it is negative."`
	WindowMs      int64   `json:"windowMs,omitempty" doc:"How long the run watches for failures after its last letter; 30,000 by default, not at all if it is negative."`
	MaxLag        int64   `json:"maxLag,omitempty" doc:"Letters that were sent and are not finished at which the run sends nothing; rate times 10 s by default, at least 1,000."`
}

// Plan is what a run would do.
type Plan struct {
	Topic       string           `json:"topic"`
	Letters     int64            `json:"letters" doc:"Letters that would be sent. A run with this number as expect sends these or nothing."`
	ByClass     map[string]int64 `json:"byClass"`
	ByGroup     map[string]int64 `json:"byGroup"`
	ByPartition map[string]int64 `json:"byPartition"`
	Targets     map[string]int64 `json:"targets" doc:"Letters by target topic."`
	SeenBy      []string         `json:"seenBy" doc:"Groups that would read the copies."`
	Watched     []string         `json:"watched" doc:"Retry topics in which the run watches for failures."`
	Skipped     map[string]int64 `json:"skipped" doc:"Letters that fit and would not be sent, by reason."`
	Warnings    []string         `json:"warnings"`
	SendingMs   int64            `json:"sendingMs" doc:"How long sending takes at that pace; 0 without a limit of the rate."`
}

// Run is a redrive run.
type Run struct {
	Topic     string     `json:"topic"`
	ID        string     `json:"id"`
	State     string     `json:"state" enum:"canary,sending,waiting,watching,done,aborted"`
	Waiting   string     `json:"waiting,omitempty" doc:"Why it waits."`
	Cause     string     `json:"cause,omitempty" doc:"Why it was aborted."`
	By        string     `json:"by"`
	Why       string     `json:"why,omitempty"`
	Owner     string     `json:"owner" doc:"Process that owns the run, or owned it last."`
	Claim     string     `json:"claim" doc:"Identifies the process's claim, to take the run over from it and from no other."`
	Here      bool       `json:"here" doc:"The server that answers runs it."`
	Silent    bool       `json:"silent" doc:"No process seems to own it: it can be resumed."`
	Started   time.Time  `json:"startedAt"`
	Heartbeat time.Time  `json:"heartbeatAt" doc:"When the numbers were recorded."`
	Stopped   *time.Time `json:"stoppedAt,omitempty" doc:"When its process left it unfinished."`
	Ended     *time.Time `json:"endedAt,omitempty"`
	// Resumed are at most 20, the last ones.
	Resumed []Resumption `json:"resumed,omitempty" doc:"When processes resumed it, the last 20, the oldest first."`
	// WindowEnds is the end of the window after the last letter.
	WindowEnds *time.Time `json:"windowEndsAt,omitempty"`
	Pace       Pace       `json:"pace"`
	Rate       float64    `json:"rate" doc:"Records a second that it may send now; negative without a limit."`
	Counts     Counts     `json:"counts"`
	Notices    []string   `json:"notices,omitempty" doc:"What the run told, newest last, if the server that answers runs it."`
}

// Resumption is that a process resumed a run.
type Resumption struct {
	At      time.Time    `json:"at"`
	Owner   string       `json:"owner" doc:"The process."`
	Changed []PaceChange `json:"changed,omitempty" doc:"Fields of the pace that were replaced."`
}

// PaceChange is a field of a pace that was replaced.
type PaceChange struct {
	Field string `json:"field" doc:"Name of the field of a pace: rate, burst, canary, tolerate, tolerateShare, ramp, window or maxLag."`
	From  string `json:"from" doc:"A number, a duration such as 30s, or none."`
	To    string `json:"to"`
}

// Counts counts the letters of a run by their outcomes.
type Counts struct {
	Selected      int64            `json:"selected"`
	Sent          int64            `json:"sent"`
	Succeeded     int64            `json:"succeeded"`
	Failed        int64            `json:"failed" doc:"Dead letters again."`
	FailedByClass map[string]int64 `json:"failedByClass,omitempty"`
	Discarded     int64            `json:"discarded"`
	Retrying      int64            `json:"retrying" doc:"Failed again, and in a retry topic; a part of pending."`
	Pending       int64            `json:"pending" doc:"Sent, without an outcome yet."`
	Unknown       int64            `json:"unknown" doc:"The outcome cannot be known any more."`
	Unfollowed    int64            `json:"unfollowed,omitempty" doc:"Sent to a target on which no outcome can be known."`
	Skipped       map[string]int64 `json:"skipped,omitempty" doc:"Selected and not sent, by reason."`
}

// AbortRequest ends a run.
type AbortRequest struct {
	Why string `json:"why,omitempty" maxLength:"4096" doc:"Reason, for the ledger; 4,096 bytes at most."`
}

// ResumeRequest continues a run. Fields of the pace that are set replace the run's.
type ResumeRequest struct {
	Pace Pace `json:"pace,omitempty"`
	// Claim takes the run from a process that still owns it.
	Claim string `json:"claim,omitempty" maxLength:"100" doc:"Takes the run from the process with this claim. Without it only a run that no process owns is resumed."`
}
