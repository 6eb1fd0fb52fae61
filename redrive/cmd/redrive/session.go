package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

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

// with does something with the cluster that is meant, once it answers.
func (t *tool) with(ctx context.Context, do func(*session) error, wrong ...error) error {
	s, err := t.connect(ctx, wrong...)
	if err != nil {
		return err
	}
	defer s.admin.Close()
	return do(s)
}

// connect finds out which cluster is meant, and makes sure that it answers. It takes what else
// is wrong with the command line, as a verb's own flags, so that all of it is told at once.
func (t *tool) connect(ctx context.Context, wrong ...error) (*session, error) {
	c, err := t.flags.Cluster(t.env)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return nil, usage(err)
	}
	for _, w := range c.Warnings {
		t.screen.Warn("%s", w)
	}
	t.screen.Status("asking %s …", c.Brokers)
	err = c.Reach(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{tool: t, Cluster: c, opts: c.Opts()}
	if t.verbose {
		s.log = slog.New(slog.NewTextHandler(t.screen.Words(), &slog.HandlerOptions{Level: slog.LevelDebug}))
		s.opts = append(s.opts, kgo.WithLogger(kslog.New(s.log)))
	}
	cl, err := kgo.NewClient(s.opts...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	s.cl, s.admin = cl, kadm.NewClient(cl)
	return s, nil
}

// redriver is the engine, on this session's cluster.
func (s *session) redriver(o *operator) (*redrive.Redriver, error) {
	r, err := redrive.New(redrive.Config{Kafka: s.opts, Naming: s.Naming, By: o.by, Why: o.why, MergePatch: edit.MergePatch, Logger: s.log})
	return r, usage(err)
}

// reader is an engine for those who write nothing, whose name nobody gets to see.
func (s *session) reader() (*redrive.Redriver, error) { return s.redriver(&operator{by: "nobody"}) }
