package dlq

import "slices"

// boundedTable holds at most limit rows: those whose keys sort first. Neither the rows nor their
// contents depend on the order in which keys come. A key that is among the first of all keys is
// always among the first so far, so its row is never removed.
type boundedTable[R any] struct {
	limit int
	rows  map[string]*R
	keys  []string // sorted
}

func newBoundedTable[R any](limit int) *boundedTable[R] {
	return &boundedTable[R]{limit: limit, rows: map[string]*R{}}
}

// row returns the row of a key, and makes it if there is none; it is nil if there is no room. out
// is the row that was removed for it, if any.
func (t *boundedTable[R]) row(key string) (row, out *R) {
	if row := t.rows[key]; row != nil {
		return row, nil
	}
	if len(t.keys) == t.limit && key > t.keys[t.limit-1] {
		return nil, nil
	}
	i, _ := slices.BinarySearch(t.keys, key)
	t.keys = slices.Insert(t.keys, i, key)
	row = new(R)
	t.rows[key] = row
	if len(t.keys) > t.limit {
		outKey := t.keys[t.limit]
		out = t.rows[outKey]
		delete(t.rows, outKey)
		t.keys = t.keys[:t.limit]
	}
	return row, out
}
