package watch

// The verb that follows a dead-letter topic.

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// NewWatch makes the verb watch.
func NewWatch(t *cli.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "watch TOPIC",
		Short: "Follow a dead-letter topic: what fails, since when, and whether it goes on",
		Long: `Watch reads a dead-letter topic and its ledger once, and then what comes: every five seconds it asks for letters,
outcomes, the run that goes on, and the groups that hold records of the source back. In a terminal it draws the state
each second: in words, then failures over time, then the groups of open letters, those of one class together. NEW is a
class that came within a day, FAILED AGAIN a group whose letters came back and failed. Ctrl-C ends it, with exit code 0.

With -o json or jsonl, or if stdout is no terminal, it writes a line of JSON for each change instead. Where brokers do
not answer it says so and goes on. It changes nothing, and takes some 40 bytes of memory a letter.`,
		Example: `  redrive watch orders.dlq
  redrive watch orders.dlq -o json | jq -r '[.state, .open] | @tsv'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.With(cmd.Context(), func(s *cli.Session) error { return watch(cmd.Context(), s, args[0]) })
		},
	}
}

const (
	// lookEvery is how often the brokers are asked, and showEvery how often the screen is drawn, so
	// that its times go on.
	lookEvery = 5 * time.Second
	showEvery = time.Second
	// restEvery is how often it is asked what moves slowly, and costs a request for each group.
	restEvery = 15 * time.Second
)

// a shower shows views. silent is since when the brokers do not answer; zero if they do. read and
// total are the progress of the first look.
type shower interface {
	show(v *view, silent time.Time, read, total int64) error
	end() error
}

func watch(ctx context.Context, s *cli.Session, topic string) error {
	of, err := subject.FindTopic(ctx, s, topic)
	if err != nil {
		return err
	}
	t, err := newTail(s, of)
	if err != nil {
		return err
	}
	var shows shower = &lines{Tool: s.Tool}
	if live := s.Screen.Live(); live != nil && s.Screen.Format == output.Table {
		shows = &terminal{Tool: s.Tool, live: live}
	}
	return errors.Join(t.show(ctx, shows), shows.end())
}
