package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// The sections of a verb's help.
const (
	SectionLetters = "Which letters"
	SectionTarget  = "Where to"
	SectionEdit    = "Changes to the records"
	SectionPace    = "How fast, and when to stop"
	SectionEnd     = "At the end"
	SectionLedger  = "For the ledger"
	SectionOthers  = "Flags"
)

// Sections are in the order of the help.
var Sections = []string{SectionLetters, SectionTarget, SectionEdit, SectionPace, SectionEnd, SectionLedger, SectionOthers}

const sectionKey = "section"

// Section gives a verb flags that belong together, under a heading of its help.
func Section(cmd *cobra.Command, title string, add func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	add(set)
	set.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{sectionKey: {title}} })
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(set)
}

// SectionOf is the heading of a flag.
func SectionOf(f *pflag.Flag) string { return append(f.Annotations[sectionKey], SectionOthers)[0] }

// CompleteFiles completes a flag.
func CompleteFiles(cmd *cobra.Command, flag string) {
	Complete(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	})
}

// Complete completes the values of a flag.
func Complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag's name is wrong, which the first test finds
	}
}

// AddSelection gives a verb the filters, and completes the values of --state and --reason.
func AddSelection(cmd *cobra.Command) (flags *selection.Flags) {
	Section(cmd, SectionLetters, func(set *pflag.FlagSet) { flags = selection.AddFlags(set) })
	Complete(cmd, "state", cobra.FixedCompletions(selection.States, cobra.ShellCompDirectiveNoFileComp))
	Complete(cmd, "reason", cobra.FixedCompletions(selection.Reasons, cobra.ShellCompDirectiveNoFileComp))
	return flags
}

// An Operator is the user's name and reason, for the ledger.
type Operator struct{ By, Why string }

// AddBy gives a verb the flag for the operator's name.
func AddBy(t *Tool, set *pflag.FlagSet) *Operator {
	o := &Operator{}
	set.StringVar(&o.By, "by", t.User, "`name` of the operator, for the ledger")
	return o
}

// AddOperator gives a verb the flags for the operator's name and reason.
func AddOperator(t *Tool, set *pflag.FlagSet) *Operator {
	o := AddBy(t, set)
	set.StringVar(&o.Why, "why", "", "`reason`, for the ledger: a ticket, what was fixed")
	return o
}

// Reasoned is an error where the reason is missing: a decision without one can't be judged later.
func (o *Operator) Reasoned() error {
	if o.Why == "" {
		return errors.New("--why is missing: the ledger records the reason")
	}
	return nil
}

// Check is an error where the name is missing.
func (o *Operator) Check() error {
	if o.By == "" {
		return errors.New("--by is missing: the ledger records the operator")
	}
	return nil
}
