package operate

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// Config is what a [Desk] depends on.
type Config struct {
	Kafka    []kgo.Opt
	Naming   retrytopics.Naming
	Group    string // of the servers that share the topics
	Cluster  *watch.Cluster
	Redriver *redrive.Redriver
	selection.View
	Rules *yamlfile.Watched[[]rule.Rule] // nil without a file of rules
	Log   *slog.Logger
}

// Desk does what people ask for. Its methods are safe for concurrent use. Their errors are
// [failure.Problem].
type Desk struct {
	cfg      Config
	Runner   *Runner
	Outcomes *Recorder
	glances  *glances
}

// New returns a desk.
func New(cfg Config) *Desk {
	return &Desk{cfg: cfg, Runner: newRunner(cfg.Log), Outcomes: newRecorder(cfg.Redriver, cfg.Log), glances: newGlances()}
}
