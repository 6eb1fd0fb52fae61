package costs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// table has the ceilings, by folder and name of a benchmark.
type table map[string]cost

// cost is what a record costs.
type cost struct{ allocations, bytes float64 }

func (c cost) String() string {
	return fmt.Sprintf("%.3f allocations, %.0f bytes", c.allocations, c.bytes)
}

// A record may cost so much more than the table says. Sixty runs, half of them beside four busy
// loops, differed by half of it.
const (
	moreAllocations = 0.02
	moreBytes       = 0.01 // of the bytes, and at least one
)

const head = "benchmark\tallocations a record\tbytes a record\n"

// parse reads a table as String writes it.
func parse(text string) (table, error) {
	rows, ok := strings.CutPrefix(text, head)
	if !ok {
		return nil, fmt.Errorf("the table does not begin with %q", head)
	}
	t := table{}
	for line := range strings.Lines(rows) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 {
			return nil, fmt.Errorf("no row of three columns: %q", line)
		}
		var c cost
		var err, err2 error
		c.allocations, err = strconv.ParseFloat(f[1], 64)
		c.bytes, err2 = strconv.ParseFloat(f[2], 64)
		if err := cmp.Or(err, err2); err != nil {
			return nil, fmt.Errorf("in %q: %w", line, err)
		}
		t[f[0]] = c
	}
	return t, nil
}

// String returns the table's text.
func (t table) String() string {
	var b strings.Builder
	b.WriteString(head)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "%s\t%.3f\t%.0f\n", name, t[name].allocations, t[name].bytes)
	}
	return b.String()
}

// replace gives the packages of costs these rows and no others.
func (t table) replace(costs table) {
	maps.DeleteFunc(t, func(name string, _ cost) bool { return costs.hasPackageOf(name) })
	maps.Copy(t, costs)
}

// hasPackageOf reports whether a row is of the package of a benchmark.
func (t table) hasPackageOf(benchmark string) bool {
	for name := range t {
		if packageOf(name) == packageOf(benchmark) {
			return true
		}
	}
	return false
}

// packageOf returns the folder of a benchmark.
func packageOf(benchmark string) string {
	folder, _, _ := strings.Cut(benchmark, ".")
	return folder
}

// problems says where costs are above the ceilings, and which rows lack the other side.
func (t table) problems(costs table) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		is := costs[name]
		ceiling, ok := t[name]
		switch {
		case !ok:
			all = append(all, fmt.Sprintf("%s has no ceiling: make costs writes it", name))
		case is.allocations > ceiling.allocations+moreAllocations || is.bytes > ceiling.bytes+max(1, moreBytes*ceiling.bytes):
			all = append(all, fmt.Sprintf("%s costs %v, above its ceiling of %v: make costs raises it, if that is worth it", name, is, ceiling))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if _, ok := costs[name]; !ok && costs.hasPackageOf(name) {
			all = append(all, fmt.Sprintf("%s has a ceiling, and is no benchmark: make costs removes it", name))
		}
	}
	return all
}
