package main

import (
	"go/doc"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// link is a link of a doc comment to a declaration.
var link = regexp.MustCompile(`\[(\*?[A-Za-z_][\w.]*)\]`)

// purpose makes the text of a row of a comment: its first sentence without the name that it begins
// with, which is that of the row or of a declaration beside it.
func purpose(comment string, names []string) string {
	text := new(doc.Package).Synopsis(comment)
	text = link.ReplaceAllString(strings.TrimRight(text, ".:"), "$1")
	first, rest, _ := strings.Cut(text, " ")
	if first == "A" || first == "An" {
		if name, after, _ := strings.Cut(rest, " "); slices.Contains(names, name) && strings.HasPrefix(after, "is ") {
			first, rest = name, after
		}
	}
	switch {
	case first == "Package", first == "Command":
		_, text, _ = strings.Cut(rest, " ")
	case slices.Contains(names, first):
		text = rest
	}
	for _, verb := range []string{"is ", "are "} {
		if after, ok := strings.CutPrefix(text, verb); ok {
			text = after
			break
		}
	}
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}
