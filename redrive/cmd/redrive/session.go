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
	cl    *kgo.Client
	admin *kadm.Client
	opts  []kgo.Opt
	log   *slog.Logger // nil unless -v is given
}

// redriver returns the engine for this session's cluster.
func (s *session) redriver() (*redrive.Redriver, error) {
	r, err := redrive.New(redrive.Config{Kafka: s.opts, Naming: s.Naming, Logger: s.log})
	return r, usage(err)
}
