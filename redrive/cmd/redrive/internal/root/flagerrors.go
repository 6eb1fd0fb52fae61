package root

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
)

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
			return fmt.Errorf("a secret must not be a flag's value, which all users of the machine can read: use --sasl-%s-file or %s", secret, connect.Variable("sasl-"+secret))
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
