package check

import (
	"maps"
	"slices"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// leaksRule: nothing of keys, values and the user's headers is in what members tell: their logs,
// spans and metrics. A look at nothing proves nothing, so something must have been looked at.
func leaksRule(ev *evidence, f *findings) {
	seen := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(ev.leaks)) {
		for kind, n := range ev.leaks[name].Seen {
			seen[kind] += n
		}
		for _, what := range ev.leaks[name].Found {
			f.note(name, -1, -1, "it tells parts of records: %s", what)
		}
	}
	for _, kind := range trace.LeakKinds {
		f.counted["texts looked at: "+kind] = seen[kind]
		if seen[kind] == 0 {
			f.note("", -1, -1, "no %s of any member was looked at", kind)
		}
	}
}
