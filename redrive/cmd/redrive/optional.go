package main

// Cells of tables that may be empty.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// orNil is a cell for text that may be missing.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// positionOf is a cell for a record's position, which may be missing.
func positionOf(p headers.Position) any {
	if p.Topic == "" {
		return nil
	}
	return p.String()
}

// orOther is a cell for a name, or for everything that has no row of its own.
func orOther(s string, folded bool) any {
	if s == "" && folded {
		return output.Pair{Table: "(other)"}
	}
	return orNil(s)
}

// unlessZero is a cell that a table omits where it is zero or false.
func unlessZero[V comparable](v V) any {
	var zero V
	if v == zero {
		return output.Pair{JSON: v}
	}
	return v
}

// explained is a count that a table explains, and omits where it is zero.
func explained(n int64, meaning string) any {
	if n == 0 {
		return unlessZero(n)
	}
	return output.Pair{Table: fmt.Sprintf("%d%s", n, meaning), JSON: n}
}

// orEmpty is counts by name for JSON: an empty object instead of null, since it is known that there
// are none.
func orEmpty(of map[string]int64) map[string]int64 {
	if of == nil {
		return map[string]int64{}
	}
	return of
}

// counts is a row for each count, the highest count first.
func counts[K cmp.Ordered](key, title string, of map[K]int64) output.Rows {
	names := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	return output.RowsOf(names, func(name K) []output.Field {
		return []output.Field{output.NewField("letters", "LETTERS", of[name]).Right(), output.NewField(key, title, name)}
	})
}
