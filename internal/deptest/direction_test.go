package deptest

import (
	"maps"
	"slices"
	"testing"
)

// anything may import all but the folders that nobody imports.
var anything = []string{"*"}

// mayImport says for each folder at the top which others its code may reach, itself aside. The order is the one in which
// the packages build on each other.
var mayImport = map[string][]string{
	"classify":    {},
	"headers":     {"classify", "internal"},
	"retrytopics": {"headers", "classify", "internal"},
	"dlq":         {"retrytopics", "headers", "classify", "internal"},
	"consumer":    {"dlq", "retrytopics", "headers", "classify", "internal"},
	// An operator's tool must not carry a consumer: it works on topics that others consume.
	"redrive": {"dlq", "retrytopics", "headers", "classify", "internal"},

	".":           anything,
	"internal":    anything,
	"integration": anything,
	"examples":    anything,
}

// besides is what single packages may reach besides, each for a reason.
var besides = map[string][]string{
	// Its demo plays an incident in one process, and that takes a service with a bug and a broker. They are the program's, which is a
	// module of its own; the engine knows nothing of them.
	"redrive/cmd/redrive": {"consumer", "github.com/twmb/franz-go/pkg/kfake"},
}

func TestPackagesImportOnlyWhatTheyBuildOn(t *testing.T) {
	t.Parallel()
	g := readGraph(t)
	for _, p := range g.sorted() {
		allowed, ok := mayImport[p.top()]
		if !ok {
			t.Errorf("%s: no rule says what it may import; add it to mayImport", p.dir)
			continue
		}
		if slices.Equal(allowed, anything) {
			continue
		}
		ways := g.reach(p)
		for _, name := range slices.Sorted(maps.Keys(ways)) {
			if dir, ours := folder(name); ours && top(dir) != p.top() && !slices.Contains(slices.Concat(allowed, besides[p.dir]), top(dir)) {
				t.Errorf("%s may not import %s: %s", p.top(), top(dir), ways[name])
			}
		}
	}
}

// Domain code says what its errors mean with classify alone, so what classify drags in comes into every domain package.
func TestClassifyNeedsOnlyTheStandardLibrary(t *testing.T) {
	t.Parallel()
	g := readGraph(t)
	for _, p := range g.sorted() {
		if p.top() != "classify" {
			continue
		}
		for name, way := range g.reach(p) {
			if _, ours := folder(name); !ours && !isStandard(name) {
				t.Errorf("not of the standard library: %s", way)
			}
		}
	}
}

// The embedded broker and the testing package belong into test kits, not into the programs that run in production.
func TestServicesCarryNoTestKit(t *testing.T) {
	t.Parallel()
	g := readGraph(t)
	for _, p := range g.sorted() {
		switch {
		case slices.Contains([]string{".", "internal", "integration", "examples"}, p.top()), p.dir == "consumer/consumertest":
			continue
		}
		ways := g.reach(p)
		for _, kit := range []string{"testing", "testing/synctest", "github.com/twmb/franz-go/pkg/kfake", "pgregory.net/rapid", "go.uber.org/goleak"} {
			if way := ways[kit]; way != "" && !slices.Contains(besides[p.dir], kit) {
				t.Errorf("%s carries a test kit: %s", p.dir, way)
			}
		}
	}
}

func TestNobodyImportsExamples(t *testing.T) {
	t.Parallel()
	for _, p := range readGraph(t).sorted() {
		for _, name := range slices.Concat(p.imports, p.tested) {
			if dir, ours := folder(name); ours && top(dir) == "examples" && p.top() != "examples" {
				t.Errorf("%s imports %s", p.dir, name)
			}
		}
	}
}

// Containers' dependencies stay in the modules that run containers.
func TestOnlyExampleModulesImportIntegration(t *testing.T) {
	t.Parallel()
	for _, p := range readGraph(t).sorted() {
		for _, name := range slices.Concat(p.imports, p.tested) {
			if dir, ours := folder(name); ours && top(dir) == "integration" && p.top() != "integration" && (p.top() != "examples" || moduleOf(t, p.dir) == ".") {
				t.Errorf("%s imports %s", p.dir, name)
			}
		}
	}
}
