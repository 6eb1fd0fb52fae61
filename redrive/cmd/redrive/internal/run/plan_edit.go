package run

import (
	"slices"
	"strings"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// editText is a field for what a run changes: which headers, and how the value.
func editText(e redrive.Edit) output.Field {
	var set []string
	for _, h := range e.Set {
		set = append(set, h.Key)
	}
	var words []string
	var value any
	switch {
	case e.Patch != nil:
		value, words = "patch", []string{"value (patch)"}
	case e.Value != nil:
		value, words = "new", []string{"value (new)"}
	}
	if keys := slices.Compact(slices.Sorted(slices.Values(slices.Concat(set, e.Unset)))); len(keys) > 0 {
		words = append(words, "headers "+strings.Join(keys, ", "))
	}
	title := "EDITED"
	if e.IsZero() {
		title = ""
	}
	fields := struct {
		Value any      `json:"value"`
		Set   []string `json:"setHeaders"`
		Unset []string `json:"unsetHeaders"`
	}{value, append([]string{}, set...), append([]string{}, e.Unset...)}
	return output.NewField("edited", title, output.Pair{Table: strings.Join(words, ", "), JSON: fields})
}
