package output

// Cells of tables that may be empty.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sidingkafka/siding/headers"
)

// OrNil is a cell for text that may be missing.
func OrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// PositionOf is a cell for a record's position, which may be missing. Of a letter that another
// program wrote a part may be missing: it is as far as it is known.
func PositionOf(p headers.Position) any {
	switch {
	case p.Topic == "":
		return nil
	case p.Partition < 0:
		return p.Topic
	case p.Offset < 0:
		return fmt.Sprintf("%s/%d", p.Topic, p.Partition)
	}
	return p.String()
}

// OrOther is a cell for a name, or for everything that has no row of its own.
func OrOther(s string, folded bool) any {
	if s == "" && folded {
		return Pair{Table: "(other)"}
	}
	return OrNil(s)
}

// UnlessZero is a cell that a table omits where it is zero or false.
func UnlessZero[V comparable](v V) any {
	var zero V
	if v == zero {
		return Pair{JSON: v}
	}
	return v
}

// Explained is a count that a table explains, and omits where it is zero.
func Explained(n int64, meaning string) any {
	if n == 0 {
		return UnlessZero(n)
	}
	return Pair{Table: fmt.Sprintf("%d%s", n, meaning), JSON: n}
}

// OrEmpty is counts by name for JSON: an empty object instead of null, since it is known that there
// are none.
func OrEmpty(of map[string]int64) map[string]int64 {
	if of == nil {
		return map[string]int64{}
	}
	return of
}

// Counts is a row for each count, the highest count first.
func Counts[K cmp.Ordered](key, title string, of map[K]int64) Rows {
	names := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	return RowsOf(names, func(name K) []Field {
		return []Field{NewField("letters", "LETTERS", of[name]).Right(), NewField(key, title, name)}
	})
}
