package cli

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
)

// Session is a command on a cluster that answered: what most verbs take.
type Session struct {
	*Tool
	*connect.Cluster
	Client *kgo.Client
	Admin  *kadm.Client
	Kafka  []kgo.Opt    // the options of its clients
	Log    *slog.Logger // nil unless -v is given
}

// Redriver returns the engine for this session's cluster.
func (s *Session) Redriver() (*redrive.Redriver, error) {
	r, err := redrive.New(redrive.Config{Kafka: s.Kafka, Naming: s.Naming, Logger: s.Log})
	return r, Usage(err)
}
