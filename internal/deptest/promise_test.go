package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	exactlyOnce = regexp.MustCompile(`(?i)\bexactly[ -]once\b`)
	committed   = regexp.MustCompile(`(?i)\breads? committed\b`)
	atLeastOnce = regexp.MustCompile(`(?i)\bruns? at least once\b`)
	denied      = regexp.MustCompile(`(?i)\bno exactly-once\b`)
)

// A reader takes "exactly once" for a promise about the handler. So where it stands, the paragraph
// says for whom it holds (consumers that read committed) and that the handler runs at least once;
// or it says that there is no such thing. This holds for documents, comments and what programs
// print.
func TestPromiseOfExactlyOnceIsQualified(t *testing.T) {
	t.Parallel()
	promises := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch ext := filepath.Ext(file); {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return fs.SkipDir
		case d.IsDir(), ext != ".go" && ext != ".md", file == filepath.Join(root, "internal", "deptest", "promise_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, p := range paragraphs(string(text)) {
			if !exactlyOnce.MatchString(p) {
				continue
			}
			promises++
			if !denied.MatchString(p) && !(committed.MatchString(p) && atLeastOnce.MatchString(p)) {
				t.Errorf("%s promises \"exactly once\" without \"for consumers that read committed; the handler runs at least once\":\n%s", file, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if promises == 0 {
		t.Error("no promise was found: is the test looking in the right place?")
	}
}

// paragraphs splits a text at empty lines, list items, table rows and between code and comments.
// The lines of a paragraph are joined.
func paragraphs(text string) (all []string) {
	var words []string
	end := func() {
		if len(words) > 0 {
			all = append(all, strings.Join(words, " "))
		}
		words = nil
	}
	comment := false
	for line := range strings.Lines(text) {
		rest, commented := strings.CutPrefix(strings.TrimSpace(line), "//")
		rest = strings.TrimSpace(rest)
		if rest == "" || commented != comment || strings.HasPrefix(rest, "- ") || strings.HasPrefix(rest, "|") {
			end()
		}
		comment = commented
		words = append(words, strings.Fields(rest)...)
	}
	end()
	return all
}
