package request

import "github.com/sidingkafka/siding/serve/api"

// Plan asks what a run would do.
type Plan struct {
	Topic
	Body api.RunRequest
}

// Start begins a run of the letters that a filter selects.
type Start struct {
	Topic
	Key
	Body api.RunRequest
}

// Redrive begins a run of one letter.
type Redrive struct {
	Letter
	Key
	Body api.RunOptions
}

// Key makes a repetition harmless.
type Key struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"A request of the same sender with the same key within a day begins no second run: it is answered with the first one, by each server."`
}

// Newest bounds a list of runs. 0 is no bound.
type Newest struct {
	Limit int `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"How many runs there are at most: the newest, and all that have not ended."`
}

// Runs asks for the runs of a topic.
type Runs struct {
	Topic
	Newest
}

// Run names a run.
type Run struct {
	Topic
	Run string `path:"run" maxLength:"100" doc:"Id of the run."`
}

// Abort ends a run.
type Abort struct {
	Run
	Body api.AbortRequest
}

// Resume continues a run.
type Resume struct {
	Run
	Body api.ResumeRequest
}

// Events follows a run.
type Events struct {
	Run
	LastEventID string `header:"Last-Event-ID" maxLength:"200" doc:"Id of the last event that the client has."`
}
