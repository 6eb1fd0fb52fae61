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
	name     string
	methods  int
	families map[string]bool
}

// readGraph type-checks a package of a checkout.
func readGraph(dir, pkg string) (*graph, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./"+pkg)
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	answer, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	exports := map[string]string{}
	var p listed // the last one that go list names is the package itself
	for d := json.NewDecoder(bytes.NewReader(answer)); ; {
		var next listed
		if err := d.Decode(&next); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		p = next
		exports[p.ImportPath] = p.Export
	}

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
		m := methods{name: name, methods: named.NumMethods(), families: map[string]bool{}}
		for method := range named.Methods() {
			family, _, _ := strings.Cut(strings.TrimSuffix(fileOf(method.Pos()), ".go"), "_")
			m.families[family] = true
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
