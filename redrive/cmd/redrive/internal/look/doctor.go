package look

// The verb that asks the cluster which of siding's features work on it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/internal/capability"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/retrytopics"
)

// NewDoctor makes the verb doctor.
func NewDoctor(t *cli.Tool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [TOPIC...]",
		Short: "Ask the cluster which of siding's features work on it",
		Long: `Doctor asks the brokers which requests they know, whether topics have ids, and how much they store beside a committed
offset, and says which of siding's features work. For each dead-letter topic it also says what the user may do with it.
It only reads. What brokers do not say beforehand is unknown.

The exit code is 7 if a feature is lacking: it does not work here, or not for this user.`,
		Example: `  redrive doctor
  redrive doctor orders.dlq
  redrive doctor -o json | jq '.[] | select(.state != "works")'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.With(cmd.Context(), func(s *cli.Session) error { return examine(cmd.Context(), s, args) })
		},
		ValidArgsFunction: subject.CompleteTopic(t, true),
	}
	return cmd
}

func examine(ctx context.Context, s *cli.Session, topics []string) error {
	cluster, found, err := capability.Ask(ctx, s.Admin, true)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		more, err := rights(ctx, s, topic)
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	s.Screen.Print("cluster %s: %s, %s", cluster.ID, counted(cluster.Brokers, "broker", "brokers"), cluster.Version)
	var rows output.Rows
	lacking := 0
	for _, f := range found {
		if f.State == capability.Lacking {
			lacking++
		}
		rows = append(rows, []output.Field{
			output.NewField("feature", "FEATURE", f.Feature), output.NewField("state", "STATE", string(f.State)),
			output.NewField("why", "WHY", orNull(f.Why)), output.NewField("do", "DO", orNull(f.Do)),
		})
	}
	if err := s.Screen.Rows(rows); err != nil || lacking == 0 {
		return err
	}
	return cli.Coded(cli.ExitLacking, fmt.Errorf("%s of siding here", counted(lacking, "feature is lacking", "features are lacking")))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// orNull is a text, or null where there is none.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// rights returns what the user may do with a dead-letter topic.
func rights(ctx context.Context, s *cli.Session, topic string) ([]capability.Finding, error) {
	f, err := subject.FindTopic(ctx, s, topic)
	if err != nil {
		return nil, err
	}
	siblings, err := s.Naming.Siblings(f.Source, f.Group)
	if err != nil {
		return nil, err
	}
	all, err := s.Admin.ListTopics(ctx)
	if err != nil {
		return nil, cli.OnResource("DESCRIBE", "cluster", "", err)
	}
	run := map[string][]string{topic: {"READ"}, siblings.Ledger: {"READ", "WRITE"}, f.Source: {"WRITE"}}
	for _, tier := range subject.Siblings(all, s.Naming, retrytopics.KindRetry) {
		if tier.Source == f.Source && tier.Group == f.Group {
			run[tier.Topic] = []string{"READ", "WRITE"}
		}
	}
	var found []capability.Finding
	for _, use := range []struct {
		feature string
		needs   map[string][]string
	}{
		{"list letters of " + topic, map[string][]string{topic: {"READ"}, siblings.Ledger: {"READ"}}},
		{"discard letters of " + topic, map[string][]string{topic: {"READ"}, siblings.Ledger: {"READ", "WRITE"}}},
		{"redrive letters of " + topic, run},
		{"prune letters of " + topic, map[string][]string{topic: {"READ", "DELETE"}, siblings.Ledger: {"READ", "WRITE"}}},
	} {
		finding := capability.Finding{Feature: use.feature, State: capability.Works}
		err := permission.Check(ctx, s.Client, use.needs)
		if _, denied := errors.AsType[*permission.DeniedError](err); denied {
			lines := strings.Split(err.Error(), "\n")
			slices.Sort(lines)
			finding.State, finding.Why, finding.Do = capability.Lacking, strings.Join(lines, "; "), "have the permissions granted"
		} else if err != nil {
			finding.State, finding.Why, finding.Do = capability.Unknown, err.Error(), "ask again"
		}
		found = append(found, finding)
	}
	return found, nil
}
