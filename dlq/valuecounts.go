package dlq

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of counts by a value.
const (
	maxValues    = 10_000 // values in memory
	maxTopValues = 10
	maxValue     = 256 // bytes of a value
)

// ValueCounts counts letters by a value that each of them has, such as the tenant in a header. The
// zero value is ready. It keeps 10,000 values, of which the first 256 bytes count, and so takes
// some 5 MiB at most. Beyond them it estimates by the space-saving algorithm (Metwally, Agrawal and
// El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
type ValueCounts struct {
	limit  int // 0 for maxValues
	at     map[string]*valueCounter
	order  []*valueCounter // a heap with the least count first, once a value was replaced
	full   bool            // a value was replaced
	others counts
}

// counts are numbers of letters: with a value, without one, and with one that is hidden.
type counts struct{ with, without, hidden int64 }

// TopValues are the values that most letters have.
type TopValues struct {
	// Top has the ten values of the most letters, those first.
	Top []ValueCount
	// Others counts the letters with other values, Without those that have no value, and Hidden
	// those whose value is not shown. With the letters of Top they add up to all that were counted.
	Others, Without, Hidden int64
	// Values is the number of different values. Exact reports that it is, and that the counts are.
	// Otherwise there were more than 10,000 values, and Values is what is known of.
	Values int
	Exact  bool
}

// ValueCount is the number of letters that have one value.
type ValueCount struct {
	Value string
	// Open is the number of letters, which may be too high, by a ten-thousandth of all counted
	// letters at most. AtLeast is what is certain; if the counts are exact, it is the same.
	Open, AtLeast int64
}

type valueCounter struct {
	value   string
	n, over int64 // letters, and how many of them may have had other values
	index   int   // in order
}

// Add counts a letter by its value.
func (c *ValueCounts) Add(value string) {
	c.others.with++
	value = value[:min(len(value), maxValue)]
	if c.at == nil {
		c.at = map[string]*valueCounter{}
	}
	if is := c.at[value]; is != nil {
		is.n++
		if c.full {
			c.down(is.index)
		}
		return
	}
	value = strings.Clone(value)
	if len(c.order) < cmp.Or(c.limit, maxValues) {
		is := &valueCounter{value: value, n: 1, index: len(c.order)}
		c.order, c.at[value] = append(c.order, is), is
		return
	}
	if !c.full {
		c.full = true
		for i := len(c.order)/2 - 1; i >= 0; i-- {
			c.down(i)
		}
	}
	least := c.order[0]
	delete(c.at, least.value)
	least.value, least.over = value, least.n
	least.n++
	c.at[value] = least
	c.down(0)
}

// AddWithout counts a letter that has no value.
func (c *ValueCounts) AddWithout() { c.others.without++ }

// AddHidden counts a letter whose value must not be shown.
func (c *ValueCounts) AddHidden() { c.others.hidden++ }

// Top returns the counts so far.
func (c *ValueCounts) Top() *TopValues {
	all := slices.SortedFunc(slices.Values(c.order), func(a, b *valueCounter) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.over, b.over), cmp.Compare(a.value, b.value))
	})
	t := &TopValues{Others: c.others.with, Without: c.others.without, Hidden: c.others.hidden, Values: len(all), Exact: !c.full}
	for _, is := range all[:min(len(all), maxTopValues)] {
		t.Top = append(t.Top, ValueCount{Value: strings.ToValidUTF8(is.value, "\uFFFD"), Open: is.n, AtLeast: is.n - is.over})
		t.Others -= is.n
	}
	return t
}

// down restores the order of the heap below a counter that rose.
func (c *ValueCounts) down(i int) {
	for {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(c.order) && c.order[child].n < c.order[least].n {
				least = child
			}
		}
		if least == i {
			return
		}
		a, b := c.order[i], c.order[least]
		c.order[i], c.order[least] = b, a
		a.index, b.index = least, i
		i = least
	}
}
