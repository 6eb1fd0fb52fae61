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
			for _, l := range diffOf(strings.Join(a, "\n"), strings.Join(b, "\n")) {
				if l.Kind != "new" {
					was = append(was, l.Text)
				}
				if l.Kind != "gone" {
					is = append(is, l.Text)
				}
			}
			if slices.Equal(a, b) {
				a, b = []string{"…"}, []string{"…"}
			}
			if slices.Contains(was, "…") { // lines far from all changes
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
	got := diffOf(before, strings.Join(lines, "\n"))
	want := []diffLine{
		{"gap", "…"}, {"same", "1997"}, {"same", "1998"}, {"same", "1999"}, {"gone", "2000"}, {"new", "x"}, {"same", "2001"}, {"same", "2002"}, {"same", "2003"}, {"gap", "…"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the diff is %v", got)
	}
	lines[0], lines[4999] = "x", "y"
	if got = diffOf(before, strings.Join(lines, "\n")); len(got) != 10000 {
		t.Errorf("texts that are too long to be compared have %d lines", len(got))
	}
}
