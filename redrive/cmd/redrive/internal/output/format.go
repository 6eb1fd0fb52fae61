package output

import (
	"fmt"
	"slices"
	"strings"
)

// Format is the form that data is written in.
type Format string

const (
	// Table is for people. Its columns may change.
	Table Format = "table"
	// JSON is one array, or one object where there is one thing to show.
	JSON Format = "json"
	// JSONL is one object a line, each written as soon as it is known.
	JSONL Format = "jsonl"
)

// Formats lists them, for help and completion.
var Formats = []string{string(Table), string(JSON), string(JSONL)}

// A Choice is the value of a flag that takes one of several words.
type Choice[T ~string] struct {
	To   *T
	From []string
	Kind string // of value
}

// Set implements pflag.Value.
func (c Choice[T]) Set(s string) error {
	if !slices.Contains(c.From, s) {
		return fmt.Errorf("choose %s", strings.Join(c.From, ", "))
	}
	*c.To = T(s)
	return nil
}

// String implements pflag.Value.
func (c Choice[T]) String() string { return string(*c.To) }

// Type implements pflag.Value.
func (c Choice[T]) Type() string { return c.Kind }
