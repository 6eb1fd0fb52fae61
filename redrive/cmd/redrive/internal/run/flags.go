package run

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/edit"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// runFlags is the flags of plan and run: which letters, where to, which changes, how fast.
type runFlags struct {
	*cli.Operator
	letters     *selection.Flags
	edit        *edit.Flags
	pace        *paceFlags
	target      redrive.Target
	maxRedrives int
	maxAttempts int
}

// asked is what the flags of plan and run ask for.
type asked struct {
	letters *selection.Selection
	edit    redrive.Edit
	pace    redrive.Pace
}

// compile reads the flags. Its error has every problem.
func (i *runFlags) compile(t *cli.Tool) (a asked, err error) {
	var err1, err2, err3, err4 error
	a.letters, err1 = i.letters.Compile(t.Now())
	a.edit, err2 = i.edit.Compile(t.Stdin)
	a.pace, err3 = i.pace.pace()
	if i.maxRedrives < 0 {
		err4 = errors.New("--max-redrives is negative")
	}
	if i.maxAttempts < 0 || i.maxAttempts > headers.MaxRedriveAttempts {
		err4 = errors.Join(err4, fmt.Errorf("--max-attempts is %d: it is at least 1 and at most %d, or 0 for the bound of the consumer's policy", i.maxAttempts, headers.MaxRedriveAttempts))
	}
	return a, errors.Join(err1, err2, err3, err4, i.Check())
}

func addRunFlags(t *cli.Tool, cmd *cobra.Command) *runFlags {
	i := &runFlags{letters: cli.AddSelection(cmd)}
	cli.Section(cmd, cli.SectionTarget, func(set *pflag.FlagSet) {
		set.StringVar(&i.target.Topic, "target", "", "`topic` to redrive to: a retry topic of the source, which only the failing group handles; or the source or another topic, for all groups that read it (default the failing group's first retry topic)")
		set.BoolVar(&i.target.Wait, "wait", false, "wait for a group that has no members, instead of refusing")
		set.BoolVar(&i.target.Force, "force", false, "redrive to a compacted target, or to the source although its retry topics seem to follow another naming")
		set.BoolVar(&i.target.KeepTimestamp, "keep-timestamp", false, "keep the records' original timestamps; for a --target that is not a retry topic")
		set.IntVar(&i.maxRedrives, "max-redrives", 3, "`times` that a record may be redriven, over all runs; 0 for any number")
		set.IntVar(&i.maxAttempts, "max-attempts", 0, "`attempts` after which a redriven record that fails is a dead letter again, also more than the consumer's policy allows (default the policy's)")
	})
	cli.Section(cmd, cli.SectionEdit, func(set *pflag.FlagSet) { i.edit = edit.AddFlags(set) })
	cli.Section(cmd, cli.SectionPace, func(set *pflag.FlagSet) { i.pace = addPace(set) })
	cli.Section(cmd, cli.SectionLedger, func(set *pflag.FlagSet) { i.Operator = cli.AddOperator(t, set) })
	return i
}

// chooses reports whether the command line has a flag that chooses letters.
func chooses(cmd *cobra.Command) (yes bool) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		yes = yes || cli.SectionOf(f) == cli.SectionLetters
	})
	return yes
}
