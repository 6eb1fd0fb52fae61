package console

import "strings"

// diffLine is a line of a diff. Kind is "same", "gone", "new" or "gap".
type diffLine struct{ Kind, Text string }

const (
	// nearLines is how many lines that stay stand around those that change.
	nearLines = 3
	// mostCompared bounds the lines that are compared one by one, on each side.
	mostCompared = 1000
)

// diffOf returns what changes from one text to another, by lines.
func diffOf(before, after string) (all []diffLine) {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add := func(kind string, lines []string) {
		for _, l := range lines {
			all = append(all, diffLine{kind, l})
		}
	}
	add("same", a[:head])
	all = append(all, compared(a[head:len(a)-tail], b[head:len(b)-tail])...)
	add("same", a[len(a)-tail:])
	return shortened(all)
}

// compared is diffOf without what both have at their ends. It finds the longest common subsequence,
// unless the texts are long: then all of the first goes, and all of the second comes.
func compared(a, b []string) (all []diffLine) {
	longest := make([][]int, len(a)+1)
	if len(a) > mostCompared || len(b) > mostCompared {
		longest = nil
	}
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(longest) - 2; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case longest != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			all = append(all, diffLine{"same", a[i]})
			i, j = i+1, j+1
		case i < len(a) && (longest == nil || j == len(b) || longest[i+1][j] >= longest[i][j+1]):
			all = append(all, diffLine{"gone", a[i]})
			i++
		default:
			all = append(all, diffLine{"new", b[j]})
			j++
		}
	}
	return all
}

// shortened returns a diff without lines that are far from all changes.
func shortened(all []diffLine) (short []diffLine) {
	near := make([]bool, len(all))
	for i, l := range all {
		for k := i - nearLines; l.Kind != "same" && k <= i+nearLines; k++ {
			if k >= 0 && k < len(all) {
				near[k] = true
			}
		}
	}
	for i, l := range all {
		if near[i] {
			short = append(short, l)
		} else if i == 0 || near[i-1] {
			short = append(short, diffLine{"gap", "…"})
		}
	}
	return short
}
