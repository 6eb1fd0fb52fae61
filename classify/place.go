package classify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPlace bounds Place in bytes.
const maxPlace = 200

// Place returns the first frame of a stack in the format of debug.Stack, such as that of
// [Result].Stack: function and line, as "billing.Charge, fx.go:118", without the folders of either.
// Of a trace of Java it returns the function at the top of the innermost cause, in the same form:
// "Tax.rate, Tax.java:42". It returns at most 200 bytes, and the empty string for a stack in
// another format. A place is code, never a part of a record.
func Place(stack string) string {
	if place, isJava := javaPlace(stack); isJava {
		return place
	}
	function := topFrame(stack)
	function = function[strings.LastIndexByte(function, '/')+1:]
	_, at, _ := strings.Cut(stack, "\n")
	at, _, _ = strings.Cut(at, "\n")
	at, indented := strings.CutPrefix(at, "\t")
	at, _, _ = strings.Cut(at, " ") // the offset in the code
	at = at[strings.LastIndexAny(at, `/\\`)+1:]
	if !indented || function == "" || at == "" || len(function)+len(at)+2 > maxPlace || !isGraphic(function) || !isGraphic(at) {
		return ""
	}
	return function + ", " + at
}

// isGraphic reports whether s is valid UTF-8 that can be seen, without blanks.
func isGraphic(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
}
