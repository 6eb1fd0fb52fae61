package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
)

// wrongFlag puts an error of the command line's flags into words of our own: what Go's packages call it helps nobody who types.
func wrongFlag(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, unknown)
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name, value := invalid.GetFlag().Name, invalid.GetValue()
	switch invalid.GetFlag().Value.Type() {
	case "int", "int64":
		return fmt.Errorf("--%s: %q is no whole number, or too large a one", name, value)
	case "float64":
		return fmt.Errorf("--%s: %q is no number", name, value)
	case "duration":
		return fmt.Errorf("--%s: %q is no duration, as 30s, 5m or 1h30m", name, value)
	case "bool":
		return fmt.Errorf("--%s: %q is neither true nor false; it needs neither", name, value)
	}
	return err
}

// unknownFlag answers those who look for the flag that is missing on purpose, and those who mistyped one.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if err.GetSpecifiedShortnames() != "" {
		return err
	}
	for _, secret := range []string{"password", "token"} {
		if strings.Contains(name, secret) {
			return fmt.Errorf("a secret is no flag's value, which all users of the machine can read: use --sasl-%s-file or %s", secret, connect.Variable("sasl-"+secret))
		}
	}
	near, least := []string{}, 3 // typos that are more are no typos
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch d := typos(name, f.Name); {
		case d < least && d < len(f.Name):
			near, least = []string{"--" + f.Name}, d
		case d == least && least < 3:
			near = append(near, "--"+f.Name)
		}
	})
	if len(near) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
}

// typos is how many letters have to be put in, taken out, replaced or exchanged with their neighbour to make one word of another: the
// optimal string alignment distance.
func typos(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)} // those before the last, the last, this
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		rows[2][0] = i + 1
		for j := range len(b) {
			replaced := rows[1][j]
			if a[i] != b[j] {
				replaced++
			}
			rows[2][j+1] = min(replaced, rows[1][j+1]+1, rows[2][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				rows[2][j+1] = min(rows[2][j+1], rows[0][j-1]+1)
			}
		}
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
	}
	return rows[1][len(b)]
}
