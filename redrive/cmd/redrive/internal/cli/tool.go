package cli

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
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/serve/payload"
)

// Process is what the operating system gives a command.
type Process struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            connect.Environment
	// Listen is for the demo's broker; nil is TCP
	Listen func(network, address string) (net.Listener, error)
	Now    func() time.Time // in the user's zone
	User   string           // the operator; empty where it is not known
}

// Tool is what all verbs share.
type Tool struct {
	Process
	Screen  *output.Screen
	Flags   *connect.Flags
	Colour  output.Colour
	UTC     bool
	Verbose bool

	Redaction *redact.Rules // of the cluster's options; nil before they are read, too
	Codec     payload.Codec // of the schema registry; nil without one

	Started bool // a verb began, so an error is no error of usage by itself
}

// Progress returns a function that writes a status line with a bar.
func Progress(t *Tool, activity string) func(read, total int64) {
	return func(read, total int64) {
		t.Screen.Status("%s %s", activity, output.Bar(read, total))
	}
}

// With does something on the cluster that the options name, once the cluster answers. It takes the
// errors of the verb's own flags, so that all errors are printed at once.
func (t *Tool) With(ctx context.Context, do func(*Session) error, wrong ...error) error {
	c, err := t.Flags.Cluster(t.Env)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return Usage(err)
	}
	if t.Redaction = c.Redact; t.Redaction != nil {
		t.Screen.Hide = t.Redaction.Text
	}
	end, err := openRegistry(t, c.Registry)
	if err != nil {
		return err
	}
	defer end()
	for _, w := range c.Warnings {
		t.Screen.Warn("%s", w)
	}
	t.Screen.Status("asking %s …", c.Brokers)
	if err := c.Reach(ctx); err != nil {
		return err
	}
	s := &Session{Tool: t, Cluster: c, Kafka: c.Opts}
	if t.Verbose {
		s.Log = slog.New(slog.NewTextHandler(t.Screen.Words(), &slog.HandlerOptions{Level: slog.LevelDebug}))
		s.Kafka = append(s.Kafka, kgo.WithLogger(kslog.New(s.Log)))
	}
	s.Client, err = kgo.NewClient(s.Kafka...)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer s.Client.Close()
	s.Admin = kadm.NewClient(s.Client)
	err = do(s)
	warnOfRedaction(t)
	return err
}

// warnOfRedaction warns of paths on the command line that fit nothing in the letters that were
// shown: one with a typo hides nothing. The paths of a profile or of the environment are for many
// topics.
func warnOfRedaction(t *Tool) {
	idle, n := t.Redaction.Idle()
	for _, p := range idle {
		if strings.HasPrefix(p.From, "--") {
			t.Screen.Warn("%s %s fits nothing in the %s shown", p.From, p.Text, Letters(n))
		}
	}
}

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
	r, err := redrive.New(redrive.Config{Kafka: s.Kafka, Naming: s.Naming, Values: payload.ValuesOf(s.Codec), Logger: s.Log})
	return r, Usage(err)
}
