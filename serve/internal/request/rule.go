package request

import "github.com/sidingkafka/siding/serve/api"

// Rule names a rule.
type Rule struct {
	Rule string `path:"rule" maxLength:"200" doc:"Name of the rule."`
}

// History asks what a rule did. A limit of 0 is none.
type History struct {
	Rule
	Limit int `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"How many decisions there are at most: the newest."`
}

// RuleOn names a rule on a topic.
type RuleOn struct {
	Rule
	Topic
}

// Pause pauses a rule on a topic, or resumes it.
type Pause struct {
	RuleOn
	Body api.PauseRequest
}
