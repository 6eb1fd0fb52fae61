package request

import "github.com/sidingkafka/siding/serve/api"

// Rule names a rule.
type Rule struct {
	Rule string `path:"rule" maxLength:"200" doc:"Name of the rule."`
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
