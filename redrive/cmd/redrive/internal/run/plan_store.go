package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// savePlan writes a plan to a new file. Only its owner can read it, since edits may be personal
// data.
func savePlan(p *redrive.Plan, name string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the plan was not saved: %s already exists and is never overwritten: choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("the plan was not saved: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("the plan was not saved: %w", errors.Join(err, os.Remove(name)))
	}
	return nil
}

// readPlan reads a plan of a topic that plan --save stored.
func readPlan(topic, name string) (*redrive.Plan, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	var p redrive.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("--plan: %s can't be run: %s; redrive plan %s --save makes another", name, strings.TrimPrefix(err.Error(), "redrive: "), topic)
	}
	if p.Selection.Topic != topic {
		return nil, fmt.Errorf("--plan: %s is a plan of %s, not of %s", name, p.Selection.Topic, topic)
	}
	p.Warnings = nil // as of then; Redriver.Run has those of now
	return &p, nil
}

// onlyPlan returns an error if the command line has flags that a stored plan decides.
func onlyPlan(cmd *cobra.Command) error {
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{cli.SectionLetters, cli.SectionTarget, cli.SectionEdit}, cli.SectionOf(f)) {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) > 0 {
		return fmt.Errorf("--plan has its own letters, target and changes: omit %s", strings.Join(others, ", "))
	}
	return nil
}

// storedPlan makes the engine that can run a stored plan. Like planRun it first records outcomes of
// earlier runs.
func storedPlan(ctx context.Context, s *cli.Session, p *redrive.Plan) (*redrive.Redriver, error) {
	if _, err := subject.FindTopic(ctx, s, p.Selection.Topic); err != nil {
		return nil, err
	}
	r, err := s.Redriver()
	if err != nil {
		return nil, err
	}
	subject.WriteOutcomes(ctx, s.Tool, r, p.Selection.Topic)()
	return r, nil
}
