package deptest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// innerMayImport says for each inner package which folders of this project its code may import
// itself. An inner package never imports the package that it is inside of, and no sibling that is
// not listed: a change to one of them needs the reading of that package and its borders, no more.
var innerMayImport = map[string][]string{
	"consumer/internal/askqueue":    {},
	"consumer/internal/backoff":     {},
	"consumer/internal/guard":       {},
	"consumer/internal/clock":       {},
	"consumer/internal/cluster":     {},
	"consumer/internal/fifo":        {},
	"consumer/internal/heldkeys":    {"consumer/internal/offsets"},
	"consumer/internal/isolate":     {"consumer/internal/backoff", "consumer/internal/offsets"},
	"consumer/internal/forward":     {"consumer/internal/backoff", "consumer/internal/clock", "consumer/internal/fifo", "headers", "internal/oversize"},
	"consumer/internal/logline":     {},
	"consumer/internal/logthrottle": {},
	"consumer/internal/offsets":     {"internal/commitmark"},
	"consumer/internal/opentxn":     {"consumer/internal/cluster"},
	"consumer/internal/quota":       {},
	"consumer/internal/session":     {},
	"consumer/internal/tier": {
		"consumer/internal/backoff", "consumer/internal/cluster", "consumer/internal/logthrottle", "consumer/internal/offsets",
		"headers", "internal/reserved", "retrytopics",
	},
	"consumer/internal/topicmonitor": {"consumer/internal/cluster"},

	"redrive/internal/bounds":     {"internal/client", "redrive/internal/permission"},
	"redrive/internal/guard":      {"dlq"},
	"redrive/internal/inflight":   {"dlq", "headers", "redrive/internal/letters"},
	"redrive/internal/letters":    {"headers", "internal/offsetset"},
	"redrive/internal/permission": {},
	"redrive/internal/resolved":   {"dlq"},
	"redrive/internal/tail":       {"redrive/internal/bounds", "redrive/internal/permission"},
	"redrive/internal/txn": {
		"dlq", "headers", "internal/client", "redrive/internal/bounds", "redrive/internal/permission",
	},

	// The checker knows a run by what was written down, and by its topics.
	"integration/chaos/internal/check": {
		"classify", "consumer", "dlq", "headers", "retrytopics", "integration/chaos/internal/trace",
	},
	"integration/chaos/internal/trace":   {"classify", "consumer", "retrytopics"},
	"integration/chaos/internal/child":   {},
	"integration/chaos/internal/outage":  {},
	"integration/chaos/internal/brokers": {"integration", "integration/chaos/internal/child", "integration/chaos/internal/trace"},
	"integration/chaos/internal/member": {
		"classify", "consumer", "headers", "internal/leak",
		"integration/chaos/internal/brokers", "integration/chaos/internal/outage", "integration/chaos/internal/trace",
	},
}

func TestInnerPackagesImportOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	importOnlyListed(t, innerMayImport, func(dir string) (string, bool) {
		outer, _, inner := strings.Cut(dir, "/internal/")
		return dir, inner && slices.Contains([]string{"consumer", "redrive", "integration/chaos"}, outer)
	}, func(dir string) (string, bool) { return dir, true })
}

// importOnlyListed checks the packages that room names, by that name. Their code imports of what
// border names only what is listed.
func importOnlyListed(t *testing.T, listed map[string][]string, room, border func(dir string) (string, bool)) {
	t.Helper()
	left := maps.Clone(listed)
	for _, p := range readGraph(t).sorted() {
		name, ok := room(p.dir)
		if !ok {
			continue
		}
		allowed, ok := listed[name]
		if !ok {
			t.Errorf("%s: no rule says what it may import; add it to the list", p.dir)
		}
		delete(left, name)
		for _, imported := range p.imports {
			dir, ours := folder(imported)
			if other, ok := border(dir); ours && ok && !slices.Contains(allowed, other) {
				t.Errorf("%s may not import %s", p.dir, dir)
			}
		}
	}
	for name := range left {
		t.Errorf("%s is listed and is not there", name)
	}
}

// serveRooms are the inner packages of serve that know what the server does, from the ground up.
// Each imports only rooms before it, and the inner packages below them import no room.
var serveRooms = []string{"watch", "operate", "alert", "apply", "httpapi", "console"}

func TestServeRooms_ImportOnlyThoseBefore(t *testing.T) {
	t.Parallel()
	g := readGraph(t)
	floor := func(dir string) int { return slices.Index(serveRooms, strings.TrimPrefix(dir, "serve/internal/")) }
	for _, p := range g.sorted() {
		if !strings.HasPrefix(p.dir, "serve/internal/") {
			continue
		}
		for _, name := range p.imports {
			if dir, _ := folder(name); floor(dir) >= 0 && floor(dir) >= floor(p.dir) {
				t.Errorf("%s may not import %s: the rooms of serve are %v, from the ground up", p.dir, dir, serveRooms)
			}
		}
	}
	for _, room := range serveRooms {
		if g["serve/internal/"+room] == nil {
			t.Errorf("serve/internal/%s is listed in serveRooms and is not there", room)
		}
	}
}

// programMayImport says for each inner package of the program which others its code may import. A
// room of verbs imports no other, but the demo runs the server; only main imports root.
var programMayImport = map[string][]string{
	"connect":       {},
	"edit":          {},
	"output":        {},
	"selection":     {},
	"cli":           {"connect", "output", "selection"},
	"cli/clitest":   {"cli", "output"},
	"subject":       {"cli", "output", "selection"},
	"look":          {"cli", "output", "selection", "subject"},
	"run":           {"cli", "edit", "output", "selection", "subject"},
	"resolve":       {"cli", "output", "selection", "subject"},
	"move":          {"cli", "output", "selection", "subject"},
	"watch":         {"cli", "output", "run", "subject"},
	"servecmd":      {"cli", "connect"},
	"demo":          {"cli", "connect", "servecmd"},
	"root":          {"cli", "connect", "demo", "look", "move", "output", "resolve", "run", "servecmd", "subject", "watch"},
	"root/roottest": {"cli", "cli/clitest", "connect", "demo", "output", "root"},
}

func TestProgram_RoomsImportOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	room := func(dir string) (string, bool) { return strings.CutPrefix(dir, "redrive/cmd/redrive/internal/") }
	importOnlyListed(t, programMayImport, room, room)
}
