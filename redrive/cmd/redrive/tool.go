package main

// The parts that every command has: streams, settings, cluster.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// process is what the operating system gives a command.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            connect.Environment
	// listen is for the demo's broker; nil is TCP
	listen func(network, address string) (net.Listener, error)
	now    func() time.Time // in the user's zone
	user   string           // who runs it; empty where it is not known
}

// tool is what all verbs share.
type tool struct {
	process
	screen  *output.Screen
	flags   *connect.Flags
	colour  output.Colour
	utc     bool
	verbose bool

	redact *redact.Rules // of the cluster's options; nil before they are read, too

	started bool // a verb began, so an error is no error of usage by itself
}

// progress returns a function that writes a status line with a bar.
func progress(t *tool, what string) func(read, total int64) {
	return func(read, total int64) {
		t.screen.Status("%s %s", what, output.Bar(read, total))
	}
}

// with does something on the cluster that the options name, once the cluster answers. It takes the
// errors of the verb's own flags, so that the user sees all errors at once.
func (t *tool) with(ctx context.Context, do func(*session) error, wrong ...error) error {
	c, err := t.flags.Cluster(t.env)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return usage(err)
	}
	if t.redact = c.Redact; t.redact != nil {
		t.screen.Hide = t.redact.Text
	}
	for _, w := range c.Warnings {
		t.screen.Warn("%s", w)
	}
	t.screen.Status("asking %s …", c.Brokers)
	if err := c.Reach(ctx); err != nil {
		return err
	}
	s := &session{tool: t, Cluster: c, kafka: c.Opts}
	if t.verbose {
		s.log = slog.New(slog.NewTextHandler(t.screen.Words(), &slog.HandlerOptions{Level: slog.LevelDebug}))
		s.kafka = append(s.kafka, kgo.WithLogger(kslog.New(s.log)))
	}
	s.client, err = kgo.NewClient(s.kafka...)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer s.client.Close()
	s.admin = kadm.NewClient(s.client)
	err = do(s)
	warnOfRedaction(t)
	return err
}

// warnOfRedaction warns of paths on the command line that fit nothing in the letters that were
// shown: one with a typo hides nothing. The paths of a profile or of the environment are for many
// topics.
func warnOfRedaction(t *tool) {
	idle, n := t.redact.Idle()
	for _, p := range idle {
		if strings.HasPrefix(p.From, "--") {
			t.screen.Warn("%s %s fits nothing in the %s shown", p.From, p.Text, letters(n))
		}
	}
}
