package api

import "time"

// Rule is a rule that redrives letters by itself.
type Rule struct {
	Name       string   `json:"name"`
	Topics     string   `json:"topics" doc:"Pattern of the dead-letter topics' names."`
	Classes    []string `json:"classes"`
	Groups     []string `json:"groups"`
	Filter     Filter   `json:"filter" doc:"All by which it selects letters, the classes and groups among it."`
	CoolDownMs int64    `json:"coolDownMs" doc:"How long no letter of the classes must have failed."`
	DelayMs    int64    `json:"delayMs,omitempty" doc:"How long a letter has been in its topic at least before the rule redrives it."`
	Times      []string `json:"times" doc:"Parts of the week in which it may begin a run; any if there are none."`
	Zone       string   `json:"zone"`
	Rate       float64  `json:"rate"`
	WindowMs   int64    `json:"windowMs"`
	MaxReplays int      `json:"maxReplays"`
	WaitMs     int64    `json:"waitMs"`
	MaxWaitMs  int64    `json:"maxWaitMs"`
	// On has the topics that the rule is for and that the sender may see.
	On []RuleOnTopic `json:"on"`
}

// RuleOnTopic is the state of a rule on a topic.
type RuleOnTopic struct {
	Topic  string     `json:"topic"`
	Open   bool       `json:"open" doc:"The circuit is open: the last run aborted."`
	Until  *time.Time `json:"until,omitempty" doc:"When an open circuit lets one letter through."`
	Cause  string     `json:"cause,omitempty" doc:"Why the run aborted that opened the circuit."`
	Paused *Paused    `json:"paused,omitempty"`
	// Would is what the rule does now.
	Would   string `json:"would" enum:"nothing,redrive,canary" doc:"What it does now."`
	Why     string `json:"why"`
	Letters int64  `json:"letters" doc:"Open letters that it selects. Where key, header, attempts or where decide, these are the letters that may fit: those that the server has read, and that do not fit, are left out."`
	// Read and Problem are of this server's looks at letters.
	Read    int64  `json:"read,omitempty" doc:"Letters that this server read since key, header, attempts or where decide; each is read once, until its rule begins a run."`
	Problem string `json:"problem,omitempty" doc:"On how many of these where failed, so that they do not fit."`
}

// Paused is who paused a rule on a topic.
type Paused struct {
	By  string    `json:"by"`
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
}

// PauseRequest pauses a rule on a topic, or resumes it.
type PauseRequest struct {
	Why string `json:"why,omitempty" maxLength:"4096" doc:"Reason, for the ledger; 4,096 bytes at most."`
}

// RuleEvent is something that a rule did, or that was done to it.
type RuleEvent struct {
	Topic string    `json:"topic"`
	At    time.Time `json:"at"`
	What  string    `json:"what" enum:"redrive,canary,paused,resumed"`
	By    string    `json:"by,omitempty" doc:"Who paused or resumed it."`
	Why   string    `json:"why,omitempty"`
	Run   string    `json:"run,omitempty" doc:"Id of the run that it began."`
	End   string    `json:"end,omitempty" doc:"How the run ended; empty while it goes on."`
}
