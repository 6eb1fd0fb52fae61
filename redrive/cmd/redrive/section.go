package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The sections of a verb's help.
const (
	sectionLetters = "Which letters"
	sectionTarget  = "Where to"
	sectionEdit    = "Changes to the records"
	sectionPace    = "How fast, and when to stop"
	sectionEnd     = "At the end"
	sectionLedger  = "For the ledger"
	sectionOthers  = "Flags"
)

// sections are in the order of the help.
var sections = []string{sectionLetters, sectionTarget, sectionEdit, sectionPace, sectionEnd, sectionLedger, sectionOthers}

const sectionKey = "section"

// section gives a verb flags that belong together, under a heading of its help.
func section(cmd *cobra.Command, title string, add func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	add(set)
	set.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{sectionKey: {title}} })
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(set)
}

// sectionOf is the heading of a flag.
func sectionOf(f *pflag.Flag) string { return append(f.Annotations[sectionKey], sectionOthers)[0] }
