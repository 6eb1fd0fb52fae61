package serve

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// Attributes of siding's own. docs/serve.md explains them.
const (
	stateKey     = attribute.Key("siding.letter.state")
	withinKey    = attribute.Key("siding.within")
	thresholdKey = attribute.Key("siding.threshold")
	runStateKey  = attribute.Key("siding.run.state")
	ruleKey      = attribute.Key("siding.rule.name")
	ruleStateKey = attribute.Key("siding.rule.state")
)

// resolvedStates are the states by which resolved letters are counted.
var resolvedStates = []dlq.State{dlq.Succeeded, dlq.Failed, dlq.Discarded, dlq.Expired, dlq.Unfollowed, dlq.Compensated, dlq.Duplicate}

var runStates = []redrive.State{redrive.Canary, redrive.Sending, redrive.Waiting, redrive.Watching, redrive.Done, redrive.Aborted}
