package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Whatever changes, the lines that stay and go are the text before, and those that stay and come
// the text after; and where nothing changes there is no diff.
func TestDiff_HasBothTexts(t *testing.T) {
	t.Parallel()
	texts := [][]string{{""}}
	for i := 0; i < len(texts); i++ {
		for _, line := range []string{"a", "b", ""} {
			if len(texts[i]) < 5 {
				texts = append(texts, append(slices.Clone(texts[i]), line))
			}
		}
	}
	for _, a := range texts {
		for _, b := range texts {
			var was, is []string
			diff, whole := diffOf(strings.Join(a, "\n"), strings.Join(b, "\n"))
			if !whole {
				t.Fatalf("from %q to %q: a part was compared", a, b)
			}
			for _, l := range diff {
				if l.Kind != "new" {
					was = append(was, l.Text)
				}
				if l.Kind != "gone" {
					is = append(is, l.Text)
				}
			}
			if slices.Contains(was, "…") { // lines far from all changes
				continue
			}
			if slices.Equal(a, b) {
				if diff != nil {
					t.Fatalf("nothing changes in %q: %v", a, diff)
				}
				continue
			}
			if !slices.Equal(was, a) || !slices.Equal(is, b) {
				t.Fatalf("from %q to %q: %q, %q", a, b, was, is)
			}
		}
	}
}

// A diff shows what changes with a few lines around it, however long the texts are.
func TestDiff_IsShort(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 5000 {
		lines = append(lines, fmt.Sprint(i))
	}
	before := strings.Join(lines, "\n")
	lines[2000] = "x"
	got, whole := diffOf(before, strings.Join(lines, "\n"))
	want := []diffLine{
		{"gap", "…"}, {"same", "1997"}, {"same", "1998"}, {"same", "1999"}, {"gone", "2000"}, {"new", "x"}, {"same", "2001"}, {"same", "2002"}, {"same", "2003"},
	}
	if !slices.Equal(got, want) || whole {
		t.Errorf("the diff of all (%v) is %v", whole, got)
	}
	lines[0] = "y"
	if got, _ = diffOf(before, strings.Join(lines, "\n")); len(got) != 5+len(want) {
		t.Errorf("two diffs are %v", got)
	}
}
