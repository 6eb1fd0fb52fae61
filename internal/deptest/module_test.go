package deptest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// requirements lists all that the root module may require, since every service that embeds siding
// inherits it. A new name is a decision: it has to be added here.
var requirements = []string{
	"github.com/twmb/franz-go",
	"github.com/twmb/franz-go/pkg/kadm",
	"github.com/twmb/franz-go/pkg/kfake", // consumertest's embedded broker
	"github.com/twmb/franz-go/pkg/kmsg",
	"github.com/twmb/franz-go/plugin/kslog",
	"go.opentelemetry.io/otel", // the API; the SDK is the user's choice
	"go.opentelemetry.io/otel/metric",
	"go.opentelemetry.io/otel/trace",

	// Tests only.
	"github.com/google/go-cmp",
	"go.uber.org/goleak",
	"pgregory.net/rapid",

	// Indirect requirements of these.
	"github.com/cespare/xxhash/v2",
	"github.com/go-logr/logr",
	"github.com/go-logr/stdr",
	"github.com/klauspost/compress",
	"github.com/stretchr/testify", // for goleak's own tests; no package here imports it
	"github.com/pierrec/lz4/v4",
	"go.opentelemetry.io/auto/sdk",
	"go.opentelemetry.io/otel/log",
}

func TestRootRequiresLittle(t *testing.T) {
	t.Parallel()
	for _, r := range readModule(t, ".").Require {
		if !slices.Contains(requirements, r.Path) {
			t.Errorf("the root module requires %s, and with it every service that embeds siding", r.Path)
		}
	}
}

// Nested modules are built from one tree with the others, and editors find them by go.work. Only in
// the commit of a release, those for users have no replace directives; then none of them has one.
func TestNestedModulesBuildFromThisTree(t *testing.T) {
	t.Parallel()
	var work struct{ Use []struct{ DiskPath string } }
	goJSON(t, ".", &work, "work", "edit", "-json")
	var used []string
	for _, u := range work.Use {
		used = append(used, path.Clean(u.DiskPath))
	}
	isRelease := !slices.ContainsFunc(modules(t), func(dir string) bool {
		return isForUsers(dir) && len(readModule(t, dir).Replace) > 0
	})
	for _, dir := range modules(t) {
		if !slices.Contains(used, dir) {
			t.Errorf("go.work does not use %s", dir)
		}
		m := readModule(t, dir)
		if want := path.Join(module, dir); m.Module.Path != want {
			t.Errorf("%s/go.mod: module %s, want %s as its folder says", dir, m.Module.Path, want)
		}
		for _, r := range m.Require {
			at, ours := folder(r.Path)
			if !ours || isRelease && isForUsers(dir) {
				continue
			}
			up, err := filepath.Rel(dir, at)
			must(t, err)
			if got := path.Clean(m.replaced(r.Path)); got != filepath.ToSlash(up) {
				t.Errorf("%s/go.mod: %s is replaced by %q, want %q", dir, r.Path, got, up)
			}
		}
	}
}

// onlyTested lists what modules for users require for their tests alone: what is small, and what
// other requirements bring anyway. Tests that need more are a module of their own.
var onlyTested = map[string][]string{
	".": {"github.com/google/go-cmp", "go.uber.org/goleak", "pgregory.net/rapid"},
	// The root module brings them.
	"integration": {"github.com/google/go-cmp", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace"},
	// go-oidc, the root module and minio-go bring all but jsonschema.
	"serve": {"github.com/go-jose/go-jose/v4", "github.com/invopop/jsonschema", "github.com/twmb/franz-go/pkg/kfake", "golang.org/x/net"},
}

// Whoever requires a module inherits what its tests require, too.
func TestModulesForUsersRequireLittleForTheirTests(t *testing.T) {
	t.Parallel()
	g := readGraph(t)
	for _, dir := range modules(t) {
		if !isForUsers(dir) {
			continue
		}
		var imported []string
		for _, p := range g.sorted() {
			if moduleOf(t, p.dir) == dir {
				imported = append(imported, p.imports...)
			}
		}
		var only []string
		for _, r := range readModule(t, dir).Require {
			if !r.Indirect && !slices.ContainsFunc(imported, func(name string) bool { return name == r.Path || strings.HasPrefix(name, r.Path+"/") }) {
				only = append(only, r.Path)
			}
		}
		if want := onlyTested[dir]; !slices.Equal(only, want) {
			t.Errorf("%s/go.mod requires for tests alone %q, want %q", dir, only, want)
		}
	}
}

// isForUsers reports whether others may require a module.
func isForUsers(dir string) bool {
	return dir != "integration/peers" && top(dir) != "examples" && top(dir) != "deploy" && !strings.Contains("/"+dir, "/internal/")
}

type modFile struct {
	Module  struct{ Path string }
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []struct{ Old, New struct{ Path string } }
}

func (m modFile) replaced(name string) string {
	for _, r := range m.Replace {
		if r.Old.Path == name {
			return r.New.Path
		}
	}
	return ""
}

func readModule(t *testing.T, dir string) (m modFile) {
	t.Helper()
	goJSON(t, dir, &m, "mod", "edit", "-json")
	return m
}

// modules returns the folders that have a go.mod.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	for file := range files(t) {
		if path.Base(file) == "go.mod" {
			dirs = append(dirs, path.Dir(file))
		}
	}
	return dirs
}

// moduleOf returns the folder of the module that a folder belongs to.
func moduleOf(t *testing.T, dir string) string {
	t.Helper()
	all := modules(t)
	for dir != "." && !slices.Contains(all, dir) {
		dir = path.Dir(dir)
	}
	return dir
}

func goJSON(t *testing.T, dir string, into any, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(root, dir)
	cmd.Env = append(os.Environ(), "GOWORK=", "GO111MODULE=on")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v", strings.Join(args, " "), dir, err)
	}
	must(t, json.Unmarshal(out, into))
}
