package dlq

import "slices"

// boundedTable has rows by key, and room for limit of them: those whose keys sort first. Which they
// are, and what is in them, does not depend on the order in which keys come: one that is among the
// first of all is among the first of those that came so far, so it is never put out, and nothing of
// it is missing.
type boundedTable[R any] struct {
	limit int
	rows  map[string]*R
	keys  []string // sorted
}

func newBoundedTable[R any](limit int) *boundedTable[R] {
	return &boundedTable[R]{limit: limit, rows: map[string]*R{}}
}

// row makes the row of a key that has none. It returns nil where there is no room for it, and the
// row that had to give way, if one did.
func (t *boundedTable[R]) row(key string) (row, out *R) {
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
