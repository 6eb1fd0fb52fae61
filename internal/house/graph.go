package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// graph says which code files of a package use names that other files of it declare.
type graph struct {
	lines map[string]int
	uses  map[string]map[string]bool
	types []methods
}

// methods says where the methods of a type stand. A family of files shares the name up to the first
// underscore.
type methods struct {
	name            string
	methods         int
	files, families map[string]bool
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	Standard                bool
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// readGraphs type-checks all packages of a checkout, those of nested modules included. The keys are
// the packages' folders.
func readGraphs(dir string) (map[string]*graph, error) {
	modules, err := modulesOf(dir)
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,Standard,GoFiles,Module"}
	for _, m := range modules {
		args = append(args, "./"+path.Join(m, "..."))
	}
	list := exec.Command("go", args...)
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK="+work(dir))
	var stderr bytes.Buffer
	list.Stderr = &stderr
	answer, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	var own []listed
	for d := json.NewDecoder(bytes.NewReader(answer)); ; {
		var next listed
		if err := d.Decode(&next); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[next.ImportPath] = next.Export
		if next.Module != nil && next.Module.Main && len(next.GoFiles) > 0 {
			own = append(own, next)
		}
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	graphs := map[string]*graph{}
	for _, p := range own {
		folder, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		if graphs[filepath.ToSlash(folder)], err = readGraph(p, exports); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return graphs, nil
}

// work is the workspace of a checkout, which has all of its modules; off if it has none.
func work(dir string) string {
	file, err := filepath.Abs(filepath.Join(dir, "go.work"))
	if err != nil || !exists(file) {
		return "off"
	}
	return file
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

// modulesOf returns the folders of a checkout that have a go.mod.
func modulesOf(dir string) (modules []string, err error) {
	err = walk(dir, func(file string) error {
		if path.Base(file) == "go.mod" {
			modules = append(modules, path.Dir(file))
		}
		return nil
	})
	if err == nil && len(modules) == 0 {
		err = fmt.Errorf("%s has no go.mod", dir)
	}
	return modules, err
}

// readGraph type-checks one package.
func readGraph(p listed, exports map[string]string) (*graph, error) {
	g := &graph{lines: map[string]int{}, uses: map[string]map[string]bool{}}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		g.lines[name] = fset.File(f.Pos()).LineCount() - 1
		g.uses[name] = map[string]bool{}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", open)}
	checked, err := conf.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return nil, err
	}
	fileOf := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	for ident, object := range info.Uses {
		if object.Pkg() == checked && object.Pos().IsValid() {
			if from, to := fileOf(ident.Pos()), fileOf(object.Pos()); from != to {
				g.uses[from][to] = true
			}
		}
	}
	for _, name := range checked.Scope().Names() {
		t, ok := checked.Scope().Lookup(name).(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		named := t.Type().(*types.Named)
		m := methods{name: name, methods: named.NumMethods(), files: map[string]bool{}, families: map[string]bool{}}
		for method := range named.Methods() {
			file := fileOf(method.Pos())
			family, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
			m.files[file], m.families[family] = true, true
		}
		g.types = append(g.types, m)
	}
	return g, nil
}

// count returns the number of pairs of files of which the one uses names of the other.
func (g *graph) count() (n int) {
	for _, to := range g.uses {
		n += len(to)
	}
	return n
}

// largestCycle returns the strongly connected component that has the most lines (Tarjan 1972).
func (g *graph) largestCycle() []string {
	var (
		index, low = map[string]int{}, map[string]int{}
		stack      []string
		best       []string
		visit      func(string)
	)
	size := func(files []string) (n int) {
		for _, f := range files {
			n += g.lines[f]
		}
		return n
	}
	visit = func(f string) {
		index[f] = len(index) + 1
		low[f] = index[f]
		stack = append(stack, f)
		for _, to := range slices.Sorted(maps.Keys(g.uses[f])) {
			if index[to] == 0 {
				visit(to)
				low[f] = min(low[f], low[to])
			} else if slices.Contains(stack, to) {
				low[f] = min(low[f], index[to])
			}
		}
		if low[f] != index[f] {
			return
		}
		from := slices.Index(stack, f)
		if found := slices.Clone(stack[from:]); size(found) > size(best) {
			best = found
		}
		stack = stack[:from]
	}
	for _, f := range slices.Sorted(maps.Keys(g.lines)) {
		if index[f] == 0 {
			visit(f)
		}
	}
	return best
}

// upward counts the references that run back in an order of the files that has few of them: the
// order that the heuristic of Eades, Lin and Smyth ("A fast and effective heuristic for the
// feedback arc set problem", 1993) finds.
func (g *graph) upward() (n int) {
	left := slices.Sorted(maps.Keys(g.lines))
	var front, back []string
	degrees := func(f string) (in, out int) {
		for _, o := range left {
			if o != f && g.uses[o][f] {
				in++
			}
			if o != f && g.uses[f][o] {
				out++
			}
		}
		return in, out
	}
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(f string) bool { _, out := degrees(f); return out == 0 })
		if next >= 0 {
			back = append(back, left[next])
			left = slices.Delete(left, next, next+1)
			continue
		}
		first := slices.MaxFunc(left, func(a, b string) int {
			inA, outA := degrees(a)
			inB, outB := degrees(b)
			return cmp.Compare(outA-inA, outB-inB)
		})
		front = append(front, first)
		left = slices.DeleteFunc(left, func(f string) bool { return f == first })
	}
	slices.Reverse(back)
	place := map[string]int{}
	for i, f := range slices.Concat(front, back) {
		place[f] = i
	}
	for from, uses := range g.uses {
		for to := range uses {
			if place[to] < place[from] {
				n++
			}
		}
	}
	return n
}
