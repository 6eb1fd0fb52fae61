package headers_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every other package writes or reads headers, so this one must not import them.
func TestImportsClassifyAndRecordHeaderOnly(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{
		"github.com/sidingkafka/siding/classify": true,
		"github.com/twmb/franz-go/pkg/kgo":       true,
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if root, _, _ := strings.Cut(path, "/"); strings.Contains(root, ".") && !allowed[path] {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}
