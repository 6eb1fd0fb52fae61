package api

import "time"

// Act is what a person, a rule or the server did on a topic.
type Act struct {
	At      time.Time    `json:"at"`
	By      string       `json:"by"`
	Process string       `json:"process,omitempty" doc:"Process through which it was done, if the ledger says so."`
	What    string       `json:"what" enum:"began-run,resumed-run,aborted-run,discarded,compensated,reopened,recorded,deleted,paused-rule,resumed-rule"`
	Why     string       `json:"why,omitempty"`
	Letters int64        `json:"letters" doc:"Letters that it was about; 0 for a rule, and for what was done to a run later."`
	Run     string       `json:"run,omitempty" doc:"Id of the run that it was about."`
	Rule    string       `json:"rule,omitempty" doc:"Rule that it was about."`
	Changed []PaceChange `json:"changed,omitempty" doc:"Limits of the run that were changed."`
}
