package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// file is the text of a Go file, measured.
type file struct {
	path         string // below the checkout, with slashes
	test         bool
	lines        int
	bare         int   // lines behind the imports that hold more than a comment
	functions    []int // lines of each function's body
	longComments []int // numbers of the lines over 100 columns that hold a comment
	tests        []string
	decls        []string // the names that it declares at its top level
}

// walk calls do with each file of a checkout, those of nested modules included.
func walk(dir string, do func(file string) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		return do(file)
	})
}

// readTree measures all Go files of a checkout.
func readTree(dir string) ([]*file, error) {
	var files []*file
	err := walk(dir, func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		f, err := readFile(name, src)
		files = append(files, f)
		return err
	})
	return files, err
}

// readFile measures one Go file.
func readFile(path string, src []byte) (*file, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, test: strings.HasSuffix(path, "_test.go"), lines: strings.Count(string(src), "\n")}
	f.bare = bareLines(src[fset.Position(endOfImports(tree)).Offset:])
	text := strings.Split(string(src), "\n")
	for _, group := range tree.Comments {
		if strings.HasPrefix(group.Text(), "Output:") { // of an example: it is what the code prints
			continue
		}
		for _, c := range group.List {
			if isDirective(c.Text) {
				continue
			}
			for l := fset.Position(c.Pos()).Line; l <= fset.Position(c.End()).Line; l++ {
				if columns(text[l-1]) > 100 {
					f.longComments = append(f.longComments, l)
				}
			}
		}
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				f.functions = append(f.functions, fset.Position(d.Body.Rbrace).Line-fset.Position(d.Body.Lbrace).Line+1)
			}
			f.decls = append(f.decls, d.Name.Name)
			if f.test && d.Recv == nil && isTest(d.Name.Name) {
				f.tests = append(f.tests, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					f.decls = append(f.decls, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						f.decls = append(f.decls, n.Name)
					}
				}
			}
		}
	}
	return f, nil
}

// endOfImports is where the declarations of a file begin.
func endOfImports(tree *ast.File) token.Pos {
	end := tree.Name.End()
	for _, d := range tree.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			end = g.End()
		}
	}
	return end
}

// bareLines counts the lines that hold something other than blanks and comments.
func bareLines(src []byte) int {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, 0)
	held := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(held)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		first := f.Line(pos)
		for l := first; l <= first+strings.Count(lit, "\n"); l++ {
			held[l] = true
		}
	}
}

// columns is the width of a line, a tab taken as four columns.
func columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// isDirective reports whether a comment is addressed to a tool, which wants it on one line.
func isDirective(comment string) bool {
	return len(comment) > 2 && comment[1] == '/' && comment[2] >= 'a' && comment[2] <= 'z'
}

// kinds are the prefixes of the functions that go test runs.
var kinds = []string{"Test", "Benchmark", "Fuzz"}

func isTest(name string) bool { return kind(name) != "" && name != "TestMain" }
