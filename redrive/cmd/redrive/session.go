package main

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
)

// session is a command on a cluster that answered: what most verbs take.
type session struct {
	*tool
	*connect.Cluster
	client *kgo.Client
	admin  *kadm.Client
	kafka  []kgo.Opt    // the options of its clients
	log    *slog.Logger // nil unless -v is given
}

// redriver returns the engine for this session's cluster.
func (s *session) redriver() (*redrive.Redriver, error) {
	r, err := redrive.New(redrive.Config{Kafka: s.kafka, Naming: s.Naming, Logger: s.log})
	return r, usage(err)
}
