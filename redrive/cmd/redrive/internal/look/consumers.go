package look

// The verb that shows the consumer groups of a topic, or one group.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// NewConsumers makes the verb consumers.
func NewConsumers(t *cli.Tool) *cobra.Command {
	var follow, group bool
	cmd := &cobra.Command{
		Use:   "consumers TOPIC|GROUP",
		Short: "Show who consumes a topic, what waits, and why",
		Long: `Consumers shows the consumer groups of a topic, or one group: whether their records run, the lag, what is parked in
retry topics and when it is due next, and each member with its host, its release and its partitions. For a dead-letter
or retry topic it shows the groups of its source. Below a group stand what holds its records back, since when, and how
many wait: an outage, a record at which a partition stopped, a missing permission, an open transaction, a record that
kills processes. Consumers of siding say that in their commits, some seconds late. Of other groups it shows members and
lag.

PARKED counts offsets, with transaction markers and the records of other groups that share a retry topic.

With --follow it looks every 5 s, until Ctrl-C, and prints a line for each group whose state changes; with -o jsonl a
line for each group and look.`,
		Example: `  redrive consumers orders
  redrive consumers orders.dlq --follow
  redrive consumers billing -o json | jq '.[] | select(.state != "runs") | .troubles'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if follow && t.Screen.Format == output.JSON {
				err = errors.New("--follow goes with -o table and -o jsonl")
			}
			return t.With(cmd.Context(), func(s *cli.Session) error {
				ask, err := whom(cmd.Context(), s, args[0], group)
				if err != nil {
					return err
				}
				if follow {
					return followConsumers(cmd.Context(), s, ask)
				}
				return showConsumers(cmd.Context(), s, args[0], ask)
			}, err)
		},
		ValidArgsFunction: subject.CompleteTopic(t, false),
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "look again every 5 s, and print what changes")
	cmd.Flags().BoolVar(&group, "group", false, "the name is a group's, although a topic has it too")
	return cmd
}

// whom says what to look at: a topic, the source of a sibling, or a group.
func whom(ctx context.Context, s *cli.Session, name string, group bool) (ask consumers.Ask, err error) {
	ask.Naming = s.Naming
	if group {
		ask.Groups = []string{name}
		return ask, nil
	}
	all, err := s.Admin.ListTopics(ctx, name)
	if err != nil {
		return ask, cli.OnTopic("DESCRIBE", name, err)
	}
	switch d := all[name]; {
	case d.Err == nil && all.Has(name):
		ask.Topics = []string{name}
		if sibling, ok := s.Naming.Parse(name); ok {
			ask.Topics = []string{sibling.Source}
		}
	case d.Err == nil, errors.Is(d.Err, kerr.UnknownTopicOrPartition), errors.Is(d.Err, kerr.InvalidTopicException):
		ask.Groups = []string{name}
	default:
		return ask, cli.OnTopic("DESCRIBE", name, d.Err)
	}
	return ask, nil
}

// lookAt looks at consumers. The error is about a part of what it saw.
func lookAt(ctx context.Context, s *cli.Session, ask consumers.Ask) (consumers.Seen, error) {
	seen, err := consumers.Look(ctx, s.Client, ask)
	if ctx.Err() != nil {
		return seen, context.Cause(ctx)
	}
	if len(ask.Groups) > 0 && len(seen.Hidden) > 0 {
		return seen, cli.OnResource("DESCRIBE", "group", ask.Groups[0], kerr.GroupAuthorizationFailed)
	}
	return seen, err
}

func showConsumers(ctx context.Context, s *cli.Session, name string, ask consumers.Ask) error {
	s.Screen.Status("looking at the consumers of %s …", name)
	seen, err := lookAt(ctx, s, ask)
	if len(seen.Groups) == 0 && err != nil {
		return err
	}
	if dueErr := seen.FindDue(ctx, s.Kafka...); dueErr != nil {
		s.Screen.Warn("%v", dueErr)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.Screen.Warn("%v", err)
	}
	var rows, members output.Rows
	for i := range seen.Groups {
		g := &seen.Groups[i]
		for j := range g.Uses {
			rows = append(rows, useFields(g, &g.Uses[j], s.Now()))
		}
		if len(ask.Groups) > 0 && len(g.Uses) == 0 {
			return fmt.Errorf("there is no topic %s, and no group of that name that has consumed any: redrive topics lists dead-letter topics", name)
		}
		for _, m := range g.Members {
			members = append(members, memberFields(g.Name, &m))
		}
	}
	if len(rows) == 0 {
		s.Screen.Print("no consumer group has committed on %s, or has a partition of it", strings.Join(ask.Topics, ", "))
	}
	if err := s.Screen.Rows(rows); err != nil {
		return err
	}
	if n := len(seen.Hidden); n > 0 {
		s.Screen.Print("%s may not be described, so it is not known what they consume: %s", counted(n, "group", "groups"), strings.Join(seen.Hidden, ", "))
	}
	return s.Screen.Tables(members)
}
