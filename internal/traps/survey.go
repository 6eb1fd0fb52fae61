package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// suite is the folder whose tests are entries of maps, by promise, since each broker's package runs
// them.
const suite = "internal/suite"

// survey holds the traps that the tests of a tree name.
type survey struct {
	tests    map[int][]test
	problems []string
}

// test is a test that names a trap.
type test struct {
	file string
	line int
	name string
}

func (t test) String() string { return fmt.Sprintf("%s:%d %s", t.file, t.line, t.name) }

// readTree reads every Go file of the tree, nested modules included.
func readTree(tree fs.FS) (*survey, error) {
	s := &survey{tests: map[int][]test{}}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || strings.HasPrefix(name, ".") && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(file) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		return s.read(file, text)
	})
	return s, err
}

// read records the traps of one file.
func (s *survey) read(file string, text []byte) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	line := func(n ast.Node) int { return files.Position(n.Pos()).Line }
	about := map[*ast.CommentGroup]bool{} // comments of tests
	for _, t := range testsOf(f, file) {
		comment := t.comment
		if comment == nil {
			comment = above(f, files, t.at)
		}
		if comment == nil {
			continue
		}
		about[comment] = true
		s.note(comment, test{file: file, line: line(t.at), name: t.name})
	}
	for _, c := range f.Comments {
		if !about[c] && slices.ContainsFunc(lines(c), isTrap) {
			s.problem("%s:%d names a trap, but is not the comment of a test", file, line(c))
		}
	}
	return nil
}

// declared is a test in the source.
type declared struct {
	name    string
	at      ast.Node
	comment *ast.CommentGroup // nil: the one that ends above it
}

// testsOf lists the tests of a file: functions of package testing, and entries of the suite's maps.
func testsOf(f *ast.File, file string) (all []declared) {
	switch {
	case strings.HasSuffix(file, "_test.go"):
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				all = append(all, declared{fn.Name.Name, fn.Name, fn.Doc})
			}
		}
	case path.Dir(file) == suite:
		for _, d := range f.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				all = append(all, entries(spec.(*ast.ValueSpec))...)
			}
		}
	}
	return all
}

// entries lists the functions in a map of promises.
func entries(spec *ast.ValueSpec) (all []declared) {
	for i, value := range spec.Values {
		promises, ok := value.(*ast.CompositeLit)
		if !ok {
			continue
		}
		for _, e := range promises.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, isText := kv.Key.(*ast.BasicLit)
			if _, isFunc := kv.Value.(*ast.FuncLit); !isText || !isFunc {
				continue
			}
			if promise, err := strconv.Unquote(key.Value); err == nil {
				all = append(all, declared{name: spec.Names[i].Name + "/" + promise, at: kv})
			}
		}
	}
	return all
}

// above returns the comment that ends on the line before a node.
func above(f *ast.File, files *token.FileSet, n ast.Node) *ast.CommentGroup {
	for _, c := range f.Comments {
		if files.Position(c.End()).Line+1 == files.Position(n.Pos()).Line {
			return c
		}
	}
	return nil
}

// trapLine is the form in which a test names its trap; a test of several has one such line for
// each. Any line that begins like it must match it.
var (
	trapLine = regexp.MustCompile(`^Trap ([0-9]+): \S`)
	trapLike = regexp.MustCompile(`^Traps? [0-9]`)
)

func isTrap(line string) bool { return trapLike.MatchString(line) }

// lines returns the lines of a comment without its marks.
func lines(c *ast.CommentGroup) (all []string) {
	for _, part := range c.List {
		text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(part.Text, "//"), "/*"), "*/")
		for line := range strings.Lines(text) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// note records the traps that a test's comment names.
func (s *survey) note(c *ast.CommentGroup, t test) {
	all := lines(c)
	for i, line := range all {
		if !isTrap(line) {
			continue
		}
		if !isTrap(all[0]) {
			s.problem("%v: a trap is named in the %d. line of the comment; it begins with it", t, i+1)
		}
		m := trapLine.FindStringSubmatch(line)
		if m == nil {
			s.problem("%v: %q is not of the form \"Trap 13: what others fell into\", a line for each trap", t, line)
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || !known(n) {
			s.problem("%v: there is no trap %s", t, m[1])
			continue
		}
		s.tests[n] = append(s.tests[n], t)
	}
}

func (s *survey) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// judge compares the tests with the catalogue.
func (s *survey) judge(later map[int]string) {
	for n := 1; n < len(traps); n++ {
		_, waits := later[n]
		switch tested := len(s.tests[n]) > 0; {
		case tested && waits:
			s.problem("trap %d has a test, %v: take it off the list of those that come later", n, s.tests[n][0])
		case !tested && !waits:
			s.problem("trap %d has no test: %s", n, traps[n])
		}
	}
}
