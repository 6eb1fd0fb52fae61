package main

import (
	"slices"
	"testing"
)

func entangledGraph() *graph {
	return &graph{
		lines: map[string]int{"a.go": 10, "b.go": 20, "c.go": 30, "d.go": 100},
		uses: map[string]map[string]bool{
			"a.go": {"b.go": true},
			"b.go": {"c.go": true},
			"c.go": {"a.go": true, "d.go": true},
			"d.go": {},
		},
	}
}

func TestGraph_LargestCycleIsCountedInLines(t *testing.T) {
	t.Parallel()
	got := entangledGraph().largestCycle()
	// d.go alone has more lines than the cycle of the others, and is a component of its own.
	if want := []string{"d.go"}; !slices.Equal(got, want) {
		t.Errorf("the largest component is %v, want %v", got, want)
	}
	g := entangledGraph()
	g.lines["d.go"] = 5
	got = g.largestCycle()
	slices.Sort(got)
	if want := []string{"a.go", "b.go", "c.go"}; !slices.Equal(got, want) {
		t.Errorf("the largest component is %v, want %v", got, want)
	}
}

func TestGraph_OneReferenceOfACycleRunsUpward(t *testing.T) {
	t.Parallel()
	if got := entangledGraph().upward(); got != 1 {
		t.Errorf("%d references run upward, want 1", got)
	}
	g := entangledGraph()
	delete(g.uses["c.go"], "a.go")
	if got := g.upward(); got != 0 {
		t.Errorf("%d references run upward where there is no cycle, want 0", got)
	}
}

// Nested modules are measured like the root.
func TestReadGraphs_ReadsAllModulesOfThisCheckout(t *testing.T) {
	t.Parallel()
	graphs, err := readGraphs("../..")
	must(t, err)
	for _, folder := range []string{"retrytopics", "consumer/internal/tier", "serve", "serve/internal/console", "redrive/cmd/redrive/internal/run", "integration/bench", "deploy/monitoring"} {
		g := graphs[folder]
		if g == nil {
			t.Errorf("package %s is not measured", folder)
			continue
		}
		if len(g.lines) < 5 || g.count() == 0 || len(g.types) == 0 {
			t.Errorf("%s: %d files with %d references and %d types", folder, len(g.lines), g.count(), len(g.types))
		}
	}
}
