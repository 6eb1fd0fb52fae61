package deptest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/sidingkafka/siding"
)

// pkg lists the imports of one folder.
type pkg struct {
	dir     string   // below the root, with slashes; "." is the root itself
	imports []string // by its code
	tested  []string // by its tests
}

// top returns the first element of the folder's path, which the rules use as its name.
func (p *pkg) top() string { return top(p.dir) }

func top(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

// graph holds all packages of the tree by their folders.
type graph map[string]*pkg

func readGraph(t *testing.T) graph {
	t.Helper()
	g := graph{}
	for file, text := range files(t) {
		if path.Ext(file) == ".go" && !strings.Contains(file, "testdata/") {
			must(t, g.add(file, text))
		}
	}
	return g
}

// files are the texts of the tree's files, by their paths below the root.
func files(t *testing.T) map[string]string {
	t.Helper()
	texts, err := readFiles()
	must(t, err)
	return texts
}

var readFiles = sync.OnceValues(func() (map[string]string, error) {
	texts, tree := map[string]string{}, os.DirFS(root)
	return texts, fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != ".":
			return fs.SkipDir
		case d.IsDir(), !slices.Contains([]string{".go", ".md", ".mod"}, path.Ext(file)):
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		texts[file] = string(text)
		return err
	})
})

func (g graph) add(file, text string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	dir := path.Dir(file)
	p := g[dir]
	if p == nil {
		p = &pkg{dir: dir}
		g[dir] = p
	}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if strings.HasSuffix(file, "_test.go") {
			p.tested = append(p.tested, name)
		} else {
			p.imports = append(p.imports, name)
		}
	}
	return nil
}

// sorted returns the packages in the order of their folders.
func (g graph) sorted() []*pkg {
	var ps []*pkg
	for _, p := range g {
		ps = append(ps, p)
	}
	slices.SortFunc(ps, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return ps
}

// reach returns all that a package's code imports, directly or through packages of this tree, each
// with the path to it.
func (g graph) reach(p *pkg) map[string]string {
	ways := map[string]string{}
	var visit func(p *pkg, way string)
	visit = func(p *pkg, way string) {
		for _, name := range p.imports {
			if ways[name] != "" {
				continue
			}
			ways[name] = way + " → " + name
			if dir, ours := folder(name); ours && g[dir] != nil {
				visit(g[dir], ways[name])
			}
		}
	}
	visit(p, p.dir)
	return ways
}

// folder returns the folder of an import path, if the package belongs to this tree.
func folder(name string) (dir string, ours bool) {
	if name == module {
		return ".", true
	}
	dir, ours = strings.CutPrefix(name, module+"/")
	return path.Clean(dir), ours
}

// isStandard recognizes the standard library as the go command does: the first element of its paths
// has no dot.
func isStandard(name string) bool { return !strings.Contains(top(name), ".") }

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
