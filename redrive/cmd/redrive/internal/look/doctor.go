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
	"github.com/sidingkafka/siding/redrive/internal/txn"
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
		if permission.Lacking(err) == nil {
			return nil, err
		}
		return []capability.Finding{refused("list letters of "+topic, err)}, nil
	}
	siblings, err := s.Naming.Siblings(f.Source, f.Group)
	if err != nil {
		return nil, err
	}
	all, err := s.Admin.ListTopics(ctx)
	if err != nil {
		return nil, cli.OnResource("DESCRIBE", "cluster", "", err)
	}
	// As for a plan: a run sends to retry topics, and to the source only where there are none.
	run := map[string][]string{topic: {"READ"}, siblings.Ledger: {"READ", "WRITE"}}
	targets := map[string]bool{}
	for _, tier := range subject.Siblings(all, s.Naming, retrytopics.KindRetry) {
		if tier.Source == f.Source && tier.Group == f.Group {
			run[tier.Topic], targets[tier.Topic] = []string{"READ", "WRITE"}, true
		}
	}
	if len(targets) == 0 {
		run[f.Source], targets[f.Source] = []string{"DESCRIBE_CONFIGS", "WRITE"}, true
	}
	var found []capability.Finding
	for _, use := range []struct {
		verb  string
		needs map[string][]string
		err   error
	}{
		{"list", map[string][]string{topic: {"READ"}, siblings.Ledger: {"READ"}}, nil},
		{"discard", map[string][]string{topic: {"READ"}, siblings.Ledger: {"READ", "WRITE"}}, nil},
		{"redrive", run, txn.CheckIDs(ctx, s.Admin, topic)},
		{"prune", map[string][]string{topic: {"READ", "DELETE"}, siblings.Ledger: {"READ", "WRITE"}}, nil},
	} {
		feature := use.verb + " letters of " + topic
		if err := errors.Join(permission.Check(ctx, s.Client, use.needs), use.err); err != nil {
			found = append(found, refused(feature, err))
			continue
		}
		found = append(found, capability.Finding{Feature: feature, State: capability.Works})
	}
	return append(found, outcomes(ctx, s, topic, targets)), nil
}

// refused is a feature that an error ends.
func refused(feature string, err error) capability.Finding {
	if permission.Lacking(err) == nil {
		return capability.Finding{Feature: feature, State: capability.Unknown, Why: err.Error(), Do: "ask again"}
	}
	lines := strings.Split(err.Error(), "\n")
	slices.Sort(lines)
	return capability.Finding{Feature: feature, State: capability.Lacking, Why: strings.Join(lines, "; "), Do: "have the permissions granted"}
}

// outcomes returns whether a run can follow what becomes of the letters: it asks where the group
// is. Only a letter names its group, so any group counts that has committed offsets on a target.
func outcomes(ctx context.Context, s *cli.Session, topic string, targets map[string]bool) capability.Finding {
	f := capability.Finding{
		Feature: "follow redriven letters of " + topic, State: capability.Unknown, Why: "no group is visible that has committed offsets where they go",
		Do: "grant DESCRIBE on the group, if there is one",
	}
	groups, err := s.Admin.ListGroups(ctx)
	if err != nil {
		return refused(f.Feature, cli.OnResource("DESCRIBE", "cluster", "", err))
	}
	for _, r := range s.Admin.FetchManyOffsets(ctx, groups.Groups()...) {
		for target := range targets {
			if r.Err == nil && len(r.Fetched[target]) > 0 {
				return capability.Finding{Feature: f.Feature, State: capability.Works}
			}
		}
	}
	return f
}
