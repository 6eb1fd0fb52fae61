package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// measures are figures by name. A name begins with the folder of the package that it is about.
type measures map[string]int

// room is a package as the table of packages shows it.
type room struct {
	folder                  string
	files, lines            int
	cycleFiles, cycleLines  int
	upward, references      int
	methods, filesOfMethods int // of the type that has the most
}

// The measures of each package that have a ceiling.
const (
	cycleLines     = "largest cycle of files, lines"
	upward         = "references between files, upward"
	mostMethods    = "methods of a type, max"
	filesOfMethods = "files that hold a type's methods, max"
	severalHomes   = "types with methods in several families"
	fileLines      = "file lines, max"
	functionLines  = "function lines, max"
)

// isOfPackage reports whether a measure is about one package.
func isOfPackage(name string) bool {
	for _, suffix := range []string{cycleLines, upward, mostMethods, filesOfMethods, severalHomes, fileLines, functionLines} {
		if strings.HasSuffix(name, " "+suffix) && !strings.HasPrefix(name, "test ") {
			return true
		}
	}
	return false
}

// measure returns the measures of a checkout, its packages by name, and what breaks a convention by
// the measure that counts it.
func measure(dir string) (measures, []room, map[string][]string, error) {
	files, err := readTree(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	graphs, err := readGraphs(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	m := measures{}
	if err := m.words(dir); err != nil {
		return nil, nil, nil, err
	}
	m.sizes(files)
	var rooms []room
	for _, folder := range slices.Sorted(maps.Keys(graphs)) {
		rooms = append(rooms, m.room(folder, graphs[folder]))
	}
	broken := conventions(files)
	for name, places := range broken {
		m[name] = len(places)
	}
	return m, rooms, broken, nil
}

// words enters the lengths of the pages: of README.md, of DESIGN.md, and of all.
func (m measures) words(dir string) error {
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		pages, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				return err
			}
			n := len(strings.Fields(string(text)))
			m["all pages, words"] += n
			if name := filepath.Base(page); name == "README.md" || name == "DESIGN.md" {
				m[name+" words"] = n
			}
		}
	}
	return nil
}

// sizes enters the lines of code and tests of the tree, and the largest file and function of each
// package.
func (m measures) sizes(files []*file) {
	var sizes, functions, tests []int
	for _, f := range files {
		if f.test {
			m["test lines"] += f.lines
			m["test lines without comments, blanks and imports"] += f.bare
			tests = append(tests, f.functions...)
			continue
		}
		m["code lines"] += f.lines
		m["code lines without comments, blanks and imports"] += f.bare
		sizes = append(sizes, f.lines)
		functions = append(functions, f.functions...)
		folder := path.Dir(f.path)
		m.most(folder, fileLines, f.lines)
		for _, n := range f.functions {
			m.most(folder, functionLines, n)
		}
	}
	m.spread(fileLines, sizes)
	m.spread(functionLines, functions)
	m.spread("test "+functionLines, tests)
}

// most raises a measure of a folder to a value.
func (m measures) most(folder, name string, value int) {
	m[folder+" "+name] = max(m[folder+" "+name], value)
}

// spread enters the median, the 90th percentile and the maximum of sizes.
func (m measures) spread(name string, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	slices.Sort(sizes)
	name = strings.TrimSuffix(name, ", max")
	m[name+", median"] = sizes[len(sizes)/2]
	m[name+", p90"] = sizes[len(sizes)*9/10]
	m[name+", max"] = sizes[len(sizes)-1]
}

// room enters the measures of a package's graph of files, and returns its row of the table.
func (m measures) room(folder string, g *graph) room {
	r := room{folder: folder, files: len(g.lines), upward: g.upward(), references: g.count()}
	for _, n := range g.lines {
		r.lines += n
	}
	if cycle := g.largestCycle(); len(cycle) > 1 {
		r.cycleFiles = len(cycle)
		for _, f := range cycle {
			r.cycleLines += g.lines[f]
		}
	}
	m[folder+" "+cycleLines] = r.cycleLines
	m[folder+" "+upward] = r.upward
	m[folder+" "+mostMethods] = 0 // also where there are none
	m[folder+" "+filesOfMethods] = 0
	m[folder+" "+severalHomes] = 0
	for _, t := range g.types {
		if t.methods > r.methods {
			r.methods, r.filesOfMethods = t.methods, len(t.files)
		}
		m.most(folder, mostMethods, t.methods)
		m.most(folder, filesOfMethods, len(t.files))
		if len(t.families) > 1 {
			m[folder+" "+severalHomes]++
		}
	}
	return r
}
