package consumer_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/internal/cases"
)

// The README's program is the one in example_readme_test.go, which compiles.
func TestDoc_ReadmesProgramCompiles(t *testing.T) {
	t.Parallel()
	const file = "example_readme_test.go"
	here := read(t, file)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, here, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var body string
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "serve" {
			body = here[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
		}
	}
	// gofmt puts on three lines what a README may have on one.
	if got, want := formatted(t, blocks(t, readme)[0]), formatted(t, body); got != want {
		t.Errorf("README.md has\n%s\nwant\n%s", got, want)
	}
}

// The other blocks of the README and of the documents are in an example.
func TestDoc_OtherBlocksCompile(t *testing.T) {
	t.Parallel()
	examples := unindented(read(t, "example_test.go") + read(t, "consumertest/example_test.go") + read(t, "../retrytopics/example_test.go") + read(t, "../integration/chaos/example_test.go"))
	for _, document := range documents(t) {
		of := blocks(t, document)
		if document == readme {
			of = of[1:]
		}
		for _, block := range of {
			if !strings.Contains(examples, unindented(block)) {
				t.Errorf("%s has a block that is in no example:\n%s", document, block)
			}
		}
	}
}

// The tables of the configuration have every field.
func TestDoc_ConfigurationTablesHaveEveryField(t *testing.T) {
	t.Parallel()
	const document = "../docs/configuration.md"
	_, tables, _ := strings.Cut(read(t, document), "\n## Config\n")
	config, policy, ok := strings.Cut(tables, "\n## Policy\n")
	policy, _, _ = strings.Cut(policy, "\n## ")
	if !ok {
		t.Fatalf("%s has no table of consumer.Policy", document)
	}
	for _, test := range []struct {
		table string
		of    reflect.Type
	}{{config, reflect.TypeFor[consumer.Config]()}, {policy, reflect.TypeFor[consumer.Policy]()}} {
		var firsts []string // cells
		for line := range strings.Lines(test.table) {
			if cells := strings.Split(line, "|"); len(cells) > 2 {
				firsts = append(firsts, cells[1])
			}
		}
		first := strings.Join(firsts, "")
		for i := range test.of.NumField() {
			if name := test.of.Field(i).Name; test.of.Field(i).IsExported() && !strings.Contains(first, "`"+name+"`") {
				t.Errorf("%s: the table of %v has no %s", document, test.of, name)
			}
		}
		if got, want := strings.Count(first, "`")/2, test.of.NumField(); got != want {
			t.Errorf("%s: the table of %v has %d fields, want %d", document, test.of, got, want)
		}
	}
}

// The links between the documents lead to files and headings that exist.
func TestDoc_LinksLeadSomewhere(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, document := range documents(t) {
		for _, link := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(read(t, document), -1) {
			file, heading, _ := strings.Cut(link[1], "#")
			target := document
			if file != "" {
				target = filepath.Join(filepath.Dir(document), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", document, err)
			} else if heading != "" && !slices.Contains(headings(t, target), heading) {
				t.Errorf("%s links to %s, which has no such heading", document, link[1])
			}
		}
	}
}

// A page begins with its readers and what it has for them, and the README lists it.
func TestDoc_PagesSayForWhomTheyAre(t *testing.T) {
	t.Parallel()
	list := read(t, readme)
	for _, document := range documents(t) {
		name, isPage := strings.CutPrefix(document, "../docs/")
		if !isPage {
			continue
		}
		if !regexp.MustCompile(`\A# .+\n\nFor [^:.]+[:.]`).MatchString(read(t, document)) {
			t.Errorf("the first sentence of docs/%s does not say for whom the page is: \"For developers who …: …\"", name)
		}
		if !strings.Contains(list, "](docs/"+name+")") {
			t.Errorf("README.md does not list docs/%s", name)
		}
	}
}

const readme = "../README.md"

// documents are the README and the pages for users.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(docs, readme, "../DESIGN.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "../SECURITY.md")
}

// headings are a document's headings as links name them.
func headings(t *testing.T, document string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(read(t, document), -1) {
		name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// blocks are a document's blocks of Go.
func blocks(t *testing.T, document string) (all []string) {
	t.Helper()
	for _, part := range strings.Split(read(t, document), "```go\n")[1:] {
		block, _, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatalf("%s has a block without an end:\n%s", document, part)
		}
		all = append(all, block)
	}
	if len(all) == 0 && document == readme {
		t.Fatal("README.md has no block of Go")
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unindented takes the space off both ends of each line.
func unindented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

func formatted(t *testing.T, statements string) string {
	t.Helper()
	source, err := format.Source([]byte("package p\nfunc _() error {\n" + strings.TrimSpace(statements) + "\n}\n"))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, statements)
	}
	return string(source)
}
