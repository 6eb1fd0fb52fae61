package console

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// diffLine is a line of a diff. Kind is "same", "gone", "new" or "gap".
type diffLine struct{ Kind, Text string }

// mostLines bounds the lines that are compared, on each side, and mostDiffLines those of a diff.
const (
	mostLines     = 4000
	mostDiffLines = 1000
)

var lineKinds = map[byte]string{' ': "same", '-': "gone", '+': "new"}

// diffOf returns what changes from one text to another, by lines, and whether it compared all of
// them.
func diffOf(before, after string) (all []diffLine, whole bool) {
	a, wholeA := firstLines(before)
	b, wholeB := firstLines(after)
	n := 0
	for line := range strings.Lines(string(diff.Diff("", a, "", b))) {
		if n++; n <= 3 {
			continue // names
		}
		if len(all) == mostDiffLines {
			return all, false
		}
		if kind := lineKinds[line[0]]; kind != "" {
			all = append(all, diffLine{kind, strings.TrimSuffix(line[1:], "\n")})
		} else if !strings.HasPrefix(line, "@@ -1,") {
			all = append(all, diffLine{"gap", "…"})
		}
	}
	return all, wholeA && wholeB
}

// firstLines returns the lines of a text that are compared, and whether these are all.
func firstLines(text string) (lines []byte, all bool) {
	text += "\n"
	n, end := 0, 0
	for i := range len(text) {
		if text[i] == '\n' && n < mostLines {
			n, end = n+1, i+1
		}
	}
	return []byte(text[:end]), end == len(text)
}
