package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// readme is the text of README.md, from which a user builds a service.
type readme string

// admitReadme refuses a release whose README says that there is none. The trial of a release does
// not ask: it is made before.
func admitReadme(of repository) error {
	text, err := os.ReadFile(filepath.Join(string(of), "README.md"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without one, prepare says what is wrong
		return err
	}
	if strings.Contains(strings.Join(strings.Fields(string(text)), " "), "no release yet") {
		return errors.New(`README.md says "no release yet", and the tag would say so for ever: commit a README without it first`)
	}
	return nil
}

// commands returns the go commands by which the README gets a module.
func (r readme) commands(root string) (commands [][]string, err error) {
	line := regexp.MustCompile(`(?m)^\s*(?:\$ )?(go (?:get|install) (?:-\S+ )*` + regexp.QuoteMeta(root) + `[^\s#]*)`)
	for _, m := range line.FindAllStringSubmatch(string(r), -1) {
		commands = append(commands, strings.Fields(m[1]))
	}
	if len(commands) == 0 {
		return nil, fmt.Errorf("README.md: no line with `go get %s` or `go install`", root)
	}
	return commands, nil
}

// block returns the first block of Go that has a text.
func (r readme) block(text string) (string, error) {
	for _, part := range strings.Split(string(r), "```go\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		if strings.Contains(block, text) {
			return block, nil
		}
	}
	return "", fmt.Errorf("README.md: no block of Go with %q", text)
}

// The README shows bodies of functions.
const (
	serviceAround = `package main

func main() {
	if err := serve(context.Background()); err != nil {
		panic(err)
	}
}

func serve(ctx context.Context) error {
%s
}
`
	testAround = `package unit

func TestReadme(t *testing.T) {
%s
}
`
)

// complete makes a file of a block. What the block takes for granted (imports, functions, errors)
// is in the example that the block is a part of, and is taken from there.
func complete(around, block, example string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(block), "package ") {
		return []byte(block), nil
	}
	given, err := parser.ParseFile(token.NewFileSet(), "example", example, 0)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(around, block)
	taken := map[string]bool{}
	for { // what was taken may take more for granted
		file, err := parser.ParseFile(token.NewFileSet(), "README.md", text, 0)
		if err != nil {
			return nil, fmt.Errorf("%w in:\n%s", err, block)
		}
		var missing []string
		for _, name := range file.Unresolved {
			if !taken[name.Name] {
				missing, taken[name.Name] = append(missing, name.Name), true
			}
		}
		if len(missing) == 0 {
			return format.Source([]byte(text))
		}
		for _, name := range missing {
			if text, err = add(text, given, name); err != nil {
				return nil, err
			}
		}
	}
}

// add adds to a file's text what a name means in the example. What the example does not declare is
// of the language; otherwise the compiler will say so.
func add(text string, example *ast.File, name string) (string, error) {
	for _, spec := range example.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return "", err
		}
		if path.Base(imported) == name && spec.Name == nil || spec.Name != nil && spec.Name.Name == name {
			clause, rest, ok := strings.Cut(text, "\n")
			if !ok {
				return "", errors.New("a file without a package clause")
			}
			return clause + "\n\nimport " + spec.Path.Value + "\n" + rest, nil
		}
	}
	for _, decl := range example.Decls {
		if !declares(decl, name) {
			continue
		}
		var out strings.Builder
		if err := printer.Fprint(&out, token.NewFileSet(), decl); err != nil {
			return "", err
		}
		return text + "\n" + out.String() + "\n", nil
	}
	return text, nil
}

func declares(decl ast.Decl, name string) bool {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.Name == name
	case *ast.GenDecl:
		return slices.ContainsFunc(d.Specs, func(s ast.Spec) bool {
			switch s := s.(type) {
			case *ast.ValueSpec:
				return slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.Name == name })
			case *ast.TypeSpec:
				return s.Name.Name == name
			}
			return false
		})
	}
	return false
}
