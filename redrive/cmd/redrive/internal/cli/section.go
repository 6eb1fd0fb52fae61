package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
