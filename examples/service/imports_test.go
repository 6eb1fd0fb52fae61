package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A team's own rule, kept by a test: the domain does not depend on Kafka.
func TestTheDomainImportsClassifyAndTheStandardLibrary(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("billing/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of the domain (%v)", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(name, "/")
			if strings.Contains(first, ".") && name != "github.com/sidingkafka/siding/classify" {
				t.Errorf("%s imports %s", file, name)
			}
		}
	}
}
