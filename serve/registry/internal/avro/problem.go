package avro

// The words of errors about values.

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// pathError is an error within a value.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

// mostPath bounds the text of a path in errors.
const mostPath = 200

// within names the member in which an error is.
func within(name string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*pathError); ok { //nolint:errorlint // it is not wrapped here
		if len(e.path)+len(name) < mostPath {
			e.path = name + "." + e.path
		}
		return e
	}
	return &pathError{path: name[:min(len(name), mostPath)], err: err}
}

func wrong(v any, want string) error { return fmt.Errorf("%s is not %s", kindOf(v), want) }

// kindOf describes a value in an error.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool, json.Number:
		return brief(fmt.Sprint(v))
	case string:
		return brief(strconv.Quote(v))
	case []any:
		return "a list"
	}
	return "an object"
}

// brief cuts text for an error.
func brief(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
