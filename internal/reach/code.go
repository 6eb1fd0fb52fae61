package main

// Which functions of the code can meet other goroutines, by their syntax.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
)

// module is the path that all modules' paths begin with.
const module = "github.com/sidingkafka/siding/"

// block is a block of a coverage profile: its file below the root, its line, and all as text.
type block struct {
	file string
	line int
	text string
}

// parseBlock reads a line of a coverage profile.
func parseBlock(line string) (b block, err error) {
	position, _, _ := strings.Cut(line, " ")
	file, lines, ok := strings.Cut(strings.TrimPrefix(position, module), ":")
	if _, err := fmt.Sscanf(lines, "%d.", &b.line); !ok || err != nil {
		return b, fmt.Errorf("%q is no line of a coverage profile", line)
	}
	b.file, b.text = file, position
	return b, nil
}

// span is a function: its lines, and whether goroutines can meet in it.
type span struct {
	from, to int
	meets    bool
}

type file []span

// code knows the functions of files that were asked for.
type code struct {
	root  string
	files map[string]file
}

// target is what a test reaches with a block: the block where goroutines can meet, else its
// function.
func (c code) target(b block) (string, error) {
	spans, ok := c.files[b.file]
	if !ok {
		if err := c.read(path.Dir(b.file)); err != nil {
			return "", err
		}
		spans = c.files[b.file]
	}
	for _, s := range spans {
		if s.from <= b.line && b.line <= s.to && !s.meets {
			return fmt.Sprintf("%s:%d", b.file, s.from), nil
		}
	}
	return b.text, nil
}

// read reads all files of a folder. Goroutines can meet in a function that has to do with them
// itself, and in the methods of a struct whose fields do.
func (c code) read(folder string) error {
	files, err := filepath.Glob(filepath.Join(c.root, folder, "*.go"))
	if err != nil {
		return err
	}
	set, syntax := token.NewFileSet(), map[string]*ast.File{}
	shared := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		syntax[path.Join(folder, filepath.Base(name))] = f
		for n := range ast.Preorder(f) {
			if t, ok := n.(*ast.TypeSpec); ok && concurrent(t.Type) {
				shared[t.Name.Name] = true
			}
		}
	}
	for name, f := range syntax {
		spans := file{}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				spans = append(spans, span{
					set.Position(fn.Pos()).Line, set.Position(fn.End()).Line,
					shared[receiver(fn)] || concurrent(fn),
				})
			}
		}
		c.files[name] = spans
	}
	return nil
}

// receiver is the name of a method's type, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	for n := range ast.Preorder(fn.Recv.List[0].Type) {
		if id, ok := n.(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}

// concurrent reports whether code starts a goroutine, or has a channel, a lock or an atomic value.
func concurrent(code ast.Node) bool {
	for n := range ast.Preorder(code) {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			return true
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				return true
			}
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && (of.Name == "sync" || of.Name == "atomic") {
				return true
			}
			switch n.Sel.Name {
			case "Go", "Lock", "RLock", "Unlock", "RUnlock", "Load", "Store", "Swap", "CompareAndSwap":
				return true
			}
		}
	}
	return false
}
