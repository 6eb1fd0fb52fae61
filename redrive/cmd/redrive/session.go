package main

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/edit"
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
func (s *session) redriver(o *operator) (*redrive.Redriver, error) {
	r, err := redrive.New(redrive.Config{Kafka: s.opts, Naming: s.Naming, By: o.by, Why: o.why, MergePatch: edit.MergePatch, Logger: s.log})
	return r, usage(err)
}

// reader returns an engine for a verb that records nothing.
func (s *session) reader() (*redrive.Redriver, error) { return s.redriver(&operator{by: "nobody"}) }
