package deptest

import (
	"maps"
	"slices"
	"testing"
)

// anything means: all folders but those that no package may import.
var anything = []string{"*"}

// mayImport lists for each top-level folder which other folders its code may reach. The packages
// build on each other in this order.
var mayImport = map[string][]string{
	"classify":    {},
	"headers":     {"classify", "internal"},
	"retrytopics": {"headers", "classify", "internal"},
	"dlq":         {"retrytopics", "headers", "classify", "internal"},
	"consumer":    {"dlq", "retrytopics", "headers", "classify", "internal"},
	// An operator's tool must not carry a consumer: it works on topics that others consume.
	"redrive": {"dlq", "retrytopics", "headers", "classify", "internal"},
	// The server does all through dlq and redrive, so that it and the program cannot disagree.
	"serve": {"redrive", "dlq", "retrytopics", "headers", "classify", "internal"},

	".":           anything,
	"internal":    anything,
	"integration": anything,
	"examples":    anything,
	"deploy":      anything, // its tests run a service and a server in a real Prometheus
}

// besides lists further imports of single packages, each with its reason.
var besides = map[string][]string{
	// The demo plays an incident in one process, which needs a service with a bug and a broker.
	// They belong to the program, a module of its own; the engine does not import them.
	"redrive/cmd/redrive":               {"consumer", "serve", "github.com/twmb/franz-go/pkg/kfake"},
	"redrive/cmd/redrive/internal/root": {"consumer", "serve", "github.com/twmb/franz-go/pkg/kfake"},
	"redrive/cmd/redrive/internal/demo": {"consumer", "serve", "github.com/twmb/franz-go/pkg/kfake"},
	// It runs the server.
	"redrive/cmd/redrive/internal/servecmd": {"serve"},
	// It finds the schema registry, as the server's configuration does.
	"redrive/cmd/redrive/internal/connect": {"serve"},
	// It writes and reads the same archives as the server.
	"redrive/cmd/redrive/internal/move": {"serve"},
	// The program and the server select letters by the same expressions.
	"redrive/cmd/redrive/internal/selection": {"serve"},
	"redrive/cmd/redrive/internal/cli":       {"serve"},
	"redrive/cmd/redrive/internal/subject":   {"serve"},
	"redrive/cmd/redrive/internal/look":      {"serve"},
	"redrive/cmd/redrive/internal/run":       {"serve"},
	"redrive/cmd/redrive/internal/resolve":   {"serve"},
	"redrive/cmd/redrive/internal/watch":     {"serve"},
	// Only tests import these two.
	"redrive/cmd/redrive/internal/cli/clitest":   {"serve", "testing"},
	"redrive/cmd/redrive/internal/root/roottest": {"consumer", "serve", "github.com/twmb/franz-go/pkg/kfake", "testing", "testing/synctest"},
	// It measures the server over the embedded broker.
	"serve/internal/browser/bench": {"github.com/twmb/franz-go/pkg/kfake"},
	// Tests of two modules import it.
	"serve/internal/letterstest": {"testing"},
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

// Domain code imports classify, so every dependency of classify becomes one of each domain package.
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

// Each other package writes or reads headers, so headers needs little itself.
func TestHeadersNeedOnlyClassifyAndKgo(t *testing.T) {
	t.Parallel()
	for _, name := range readGraph(t)["headers"].imports {
		if dir, ours := folder(name); ours && dir != "classify" && dir != "internal/reserved" || !ours && !isStandard(name) && name != "github.com/twmb/franz-go/pkg/kgo" {
			t.Errorf("headers may not import %s", name)
		}
	}
}

// The embedded broker and package testing belong to test kits, not to programs in production.
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

// Who mounts the server without a provider links nothing that asks one.
func TestMountedServerCarriesNoOpenID(t *testing.T) {
	t.Parallel()
	g := readGraph(t)
	ways := g.reach(g["serve"])
	for _, library := range []string{"github.com/coreos/go-oidc/v3/oidc", "golang.org/x/oauth2"} {
		if way := ways[library]; way != "" {
			t.Errorf("serve carries %s", way)
		}
		if g.reach(g["serve/oidc"])[library] == "" {
			t.Errorf("serve/oidc does not use %s", library)
		}
	}
}

// Nor who uses no schema registry anything that reads schemas.
func TestMountedServerCarriesNoRegistry(t *testing.T) {
	t.Parallel()
	g := readGraph(t)
	for _, dir := range []string{"serve", "serve/payload"} {
		ways := g.reach(g[dir])
		for _, library := range []string{module + "/serve/registry", "github.com/bufbuild/protocompile/parser", "github.com/santhosh-tekuri/jsonschema/v6", "github.com/twmb/franz-go/pkg/sr"} {
			if way := ways[library]; way != "" {
				t.Errorf("%s carries %s", dir, way)
			}
			if library != module+"/serve/registry" && g.reach(g["serve/registry"])[library] == "" {
				t.Errorf("serve/registry does not use %s", library)
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

// The dependencies of containers stay in the modules that run containers: examples, and the console
// in a browser.
func TestOnlyExampleModulesImportIntegration(t *testing.T) {
	t.Parallel()
	for _, p := range readGraph(t).sorted() {
		if moduleOf(t, p.dir) == "serve/internal/browser" {
			continue
		}
		for _, name := range slices.Concat(p.imports, p.tested) {
			if dir, ours := folder(name); ours && top(dir) == "integration" && p.top() != "integration" && (p.top() != "examples" || moduleOf(t, p.dir) == ".") {
				t.Errorf("%s imports %s", p.dir, name)
			}
		}
	}
}
