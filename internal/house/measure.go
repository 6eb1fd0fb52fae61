package main

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// measures are figures by name; a name begins with the folder that it is about.
type measures map[string]int

func (m measures) names() iter.Seq[string] { return maps.Keys(m) }

// entangled are the packages whose files are measured for cycles.
var entangled = []string{"consumer", "dlq", "redrive"}

// counted are the folders whose lines are counted, the packages inside them included.
var counted = []string{"classify", "consumer", "dlq", "headers", "internal", "redrive", "retrytopics"}

// measure returns the measures of a checkout, and what breaks a convention by the measure that
// counts it.
func measure(dir string) (measures, map[string][]string, error) {
	files, err := readTree(dir)
	if err != nil {
		return nil, nil, err
	}
	m := measures{}
	for _, top := range counted {
		var inside []*file
		for _, f := range files {
			if f.top() == top {
				inside = append(inside, f)
			}
		}
		m.count(top, inside)
	}
	for _, doc := range []string{"README.md", "DESIGN.md"} {
		text, err := os.ReadFile(filepath.Join(dir, doc))
		if err != nil {
			return nil, nil, err
		}
		m[doc+" words"] = len(strings.Fields(string(text)))
	}
	for _, pkg := range entangled {
		g, err := readGraph(dir, pkg)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", pkg, err)
		}
		m.entanglement(pkg, g)
	}
	broken := conventions(files)
	for name, places := range broken {
		m[name] = len(places)
	}
	return m, broken, nil
}

// count enters the sizes of a folder's files and functions.
func (m measures) count(top string, files []*file) {
	var sizes, functions, tests []int
	for _, f := range files {
		kind := "code"
		if f.test {
			kind = "test"
		}
		m[top+" "+kind+" lines"] += f.lines
		m[top+" "+kind+" lines without comments, blanks and imports"] += f.bare
		if f.test {
			tests = append(tests, f.functions...)
			continue
		}
		sizes = append(sizes, f.lines)
		functions = append(functions, f.functions...)
	}
	m.spread(top+" file lines", sizes)
	m.spread(top+" function lines", functions)
	m.spread(top+" test function lines", tests)
}

// spread enters the median, the 90th percentile and the maximum of sizes.
func (m measures) spread(name string, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	slices.Sort(sizes)
	m[name+", median"] = sizes[len(sizes)/2]
	m[name+", p90"] = sizes[len(sizes)*9/10]
	m[name+", max"] = sizes[len(sizes)-1]
}

// entanglement enters the measures of a package's graph of files.
func (m measures) entanglement(pkg string, g *graph) {
	cycle := g.largestCycle()
	for _, f := range cycle {
		m[pkg+" largest cycle, lines"] += g.lines[f]
	}
	m[pkg+" types with methods in several families"] = 0 // also where there is none
	m[pkg+" largest cycle, files"] = len(cycle)
	m[pkg+" files"] = len(g.lines)
	m[pkg+" references between files"] = g.count()
	m[pkg+" references between files, upward"] = g.upward()
	for _, t := range g.types {
		m[pkg+" methods of a type, max"] = max(m[pkg+" methods of a type, max"], t.methods)
		m[pkg+" families that hold a type's methods, max"] = max(m[pkg+" families that hold a type's methods, max"], len(t.families))
		if len(t.families) > 1 {
			m[pkg+" types with methods in several families"]++
		}
	}
}
