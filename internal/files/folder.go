package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// folder is a folder with files of Go.
type folder struct {
	dir      string
	code     bool   // it has a file of Go
	module   bool   // it has a go.mod
	purpose  string // of its package comment
	families map[string]*family
}

// family is a file with those whose names continue its name after an underscore.
type family struct {
	file    string // whose first comment has the purpose
	purpose string
	parts   []string // the rest of the names of its other files
}

// readTree reads all folders with files of Go, those of nested modules included.
func readTree(tree fs.FS) (map[string]*folder, error) {
	folders := map[string]*folder{}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(file) != ".go" && d.Name() != "go.mod":
			return nil
		}
		dir := path.Dir(file)
		f := folders[dir]
		if f == nil {
			f = &folder{dir: dir, families: map[string]*family{}}
			folders[dir] = f
		}
		if d.Name() == "go.mod" {
			f.module = true
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		return f.add(file, text)
	})
	maps.DeleteFunc(folders, func(_ string, f *folder) bool { return !f.code })
	return folders, err
}

// add takes in a file of Go.
func (f *folder) add(file string, text []byte) error {
	f.code = true
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		return err
	}
	if tree.Doc != nil && f.purpose == "" {
		base := path.Base(f.dir) // a program's comment may begin with its name
		f.purpose = purpose(tree.Doc.Text(), []string{strings.ToUpper(base[:1]) + base[1:]})
	}
	stem := strings.TrimSuffix(path.Base(file), ".go")
	if strings.HasSuffix(stem, "_test") || stem == "doc" {
		return nil
	}
	name, part, isPart := strings.Cut(stem, "_")
	own := f.families[name]
	if own == nil {
		own = &family{}
		f.families[name] = own
	}
	if isPart {
		own.parts = append(own.parts, "_"+part)
	}
	if own.file == "" || !isPart {
		own.file, own.purpose = file, firstPurpose(fset, tree)
	}
	return nil
}

// firstPurpose is that of the first comment of a file which stands at the left margin. The package
// comment is the folder's.
func firstPurpose(fset *token.FileSet, tree *ast.File) string {
	for _, c := range tree.Comments {
		if text := c.Text(); c != tree.Doc && text != "" && fset.Position(c.Pos()).Column == 1 {
			return purpose(text, names(tree))
		}
	}
	return ""
}

// names are those of the functions, types, variables and constants that a file declares.
func names(tree *ast.File) (all []string) {
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			all = append(all, d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					all = append(all, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						all = append(all, n.Name)
					}
				}
			}
		}
	}
	return all
}

// text is the folder's sentence.
func (f *folder) text() string {
	if f.module {
		return f.purpose + "; a module of its own"
	}
	return f.purpose
}

// table lists the families, under the folder's own sentence.
func (f *folder) table() []string {
	about := f.purpose + "."
	if f.module {
		about += " It is a module of its own."
	}
	lines := []string{about, "", "| family | for |", "|---|---|"}
	for _, name := range slices.Sorted(maps.Keys(f.families)) {
		own := f.families[name]
		text := own.purpose
		var parts []string // that the text does not name
		for _, part := range own.parts {
			if !strings.Contains(text, name+part+".go") {
				parts = append(parts, "`"+part+"`")
			}
		}
		if len(parts) > 0 {
			text += " (" + strings.Join(parts, ", ") + ")"
		}
		lines = append(lines, row(name, text))
	}
	return lines
}

// problems are what keeps the folder from having a text for each row.
func (f *folder) problems(withFamilies bool) (all []error) {
	if f.purpose == "" {
		all = append(all, fmt.Errorf("%s has no package comment that says what it is for", f.dir))
	}
	for _, name := range slices.Sorted(maps.Keys(f.families)) {
		if own := f.families[name]; withFamilies && own.purpose == "" {
			all = append(all, fmt.Errorf("%s has no comment that says what it is for", own.file))
		}
	}
	return all
}
