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

// Set, String and Type make a Format the value of a flag.
func (f *Format) Set(s string) error { return choose(f, s, Formats) }
func (f *Format) String() string     { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

func choose[T ~string](to *T, s string, from []string) error {
	if !slices.Contains(from, s) {
		return fmt.Errorf("choose %s", strings.Join(from, ", "))
	}
	*to = T(s)
	return nil
}
