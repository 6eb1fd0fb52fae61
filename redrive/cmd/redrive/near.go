package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// mostClasses is how many classes a hint names.
const mostClasses = 5

// hintedError is an error with what may help, which is said below it.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// absent says which of the classes that were asked for no open letter has, and which there are instead; empty where that is not so, or
// can't be found out. A class that is mistyped looks like one of which all is well.
func (t *tool) absent(ctx context.Context, ledger *dlq.Ledger, sel *selection.Selection) string {
	if len(sel.Filter.Classes) == 0 {
		return ""
	}
	sum, err := ledger.Summarize(ctx, dlq.Filter{}, dlq.Cursor{}, t.progress("reading "+ledger.Topic()))
	t.screen.Status("")
	if err != nil {
		return ""
	}
	there := map[string]int64{}
	for _, f := range sum.Failures {
		if f.Folded {
			return "" // it may be one of those that were not told apart
		}
		if f.Class != "" {
			there[f.Class] += f.Count
		}
	}
	var not []string
	for _, class := range sel.Filter.Classes {
		if there[class] == 0 {
			not = append(not, class)
		}
	}
	if len(not) == 0 {
		return ""
	}
	said := fmt.Sprintf("no open letter has the class %s: ", strings.Join(not, " or "))
	classes := slices.SortedFunc(maps.Keys(there), func(a, b string) int {
		if n := typos(not[0], a) - typos(not[0], b); n != 0 {
			return n // what was meant comes first
		}
		return strings.Compare(a, b)
	})
	if len(classes) == 0 {
		return said + "none has any"
	}
	more := ""
	if len(classes) > mostClasses {
		classes, more = classes[:mostClasses], fmt.Sprintf(", … (redrive summary %s shows all)", ledger.Topic())
	}
	return said + "there are " + strings.Join(classes, ", ") + more
}
