package root

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mayBeEmpty is the flags for which an empty value makes sense.
var mayBeEmpty = []string{"key"}

var errEmpty = errors.New("the value is empty, perhaps because a shell variable is not set: give a value, or omit the flag")

// A filled value is a flag's that is not taken empty. Without it --class "$X" would choose all
// letters where X is not set, and
// --archive "$X" would delete without an archive.
type nonEmptyValue struct{ pflag.Value }

// Set refuses an empty value, and an empty part of several.
func (v nonEmptyValue) Set(s string) error {
	parts := []string{s}
	if v.Type() == "stringSlice" {
		parts = strings.Split(s, ",")
	}
	if slices.ContainsFunc(parts, func(part string) bool { return strings.TrimSpace(part) == "" }) {
		return errEmpty
	}
	return v.Value.Set(s)
}

// refuseEmpty makes all text flags of a command, and of the commands below it, refuse empty values.
// Other flags refuse them anyway.
func refuseEmpty(cmd *cobra.Command) {
	for _, set := range []*pflag.FlagSet{cmd.PersistentFlags(), cmd.Flags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if !strings.HasPrefix(f.Value.Type(), "string") || slices.Contains(mayBeEmpty, f.Name) {
				return
			}
			if f.DefValue == "[]" {
				f.DefValue = "" // or help would show it: pflag knows its own lists only
			}
			f.Value = nonEmptyValue{f.Value}
		})
	}
	for _, sub := range cmd.Commands() {
		refuseEmpty(sub)
	}
}
