package root

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
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

// wrongFlag puts an error of package pflag into the words of a user of the command line.
func wrongFlag(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, unknown)
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name, value := invalid.GetFlag().Name, invalid.GetValue()
	if kind := kinds[invalid.GetFlag().Value.Type()]; kind != "" {
		return fmt.Errorf("--%s: %q is not %s", name, value, kind)
	}
	return err
}

// kinds is what a flag takes, by its type.
var kinds = map[string]string{
	"int": "a whole number, or is too large", "int64": "a whole number, or is too large", "float64": "a number",
	"rate":     "a number of records a second, nor a share of more than 0% and at most 100%",
	"duration": "a duration such as 30s, 5m or 1h30m", "bool": "true or false: a switch needs no value",
}

// unknownFlag explains why no flag takes a secret, and suggests flags for a mistyped one.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if err.GetSpecifiedShortnames() != "" {
		return err
	}
	for _, secret := range []string{"password", "token"} {
		if strings.Contains(name, secret) {
			of := "sasl"
			if strings.HasPrefix(name, "registry") {
				of = "registry"
			}
			return fmt.Errorf("a secret must not be a flag's value, which all users of the machine can read: use --%s-%s-file or %s", of, secret, connect.Variable(of+"-"+secret))
		}
	}
	// The library finds similar words, but among verbs only.
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := flags.SuggestionsFor("--" + name); len(near) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// completeFlags completes the values of the flags that all verbs have.
func completeFlags(t *cli.Tool, root *cobra.Command) {
	fixed := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	cli.Complete(root, "output", fixed(output.Formats))
	cli.Complete(root, "color", fixed(output.Colours))
	cli.Complete(root, "sasl", fixed(connect.Mechanisms))
	cli.Complete(root, "profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		file, _ := t.Flags.File(t.Env)
		return connect.Profiles(file), cobra.ShellCompDirectiveNoFileComp
	})
	for _, name := range []string{"config", "tls-ca", "tls-cert", "tls-key", "sasl-password-file", "sasl-token-file", "registry-password-file", "registry-token-file", "registry-ca", "registry-cert", "registry-key"} {
		cli.CompleteFiles(root, name)
	}
}
