package classify

import "strings"

// javaPlace returns the place of a stack trace of Java, where the trace has one: the function at
// the top of the innermost cause, as "Tax.rate, Tax.java:42".
func javaPlace(trace string) (place string, isJava bool) {
	if i := strings.LastIndex(trace, "\nCaused by: "); i >= 0 {
		trace = trace[i+1:]
	}
	_, rest, _ := strings.Cut(trace, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	line, isJava = strings.CutPrefix(line, "\tat ")
	if !isJava {
		return "", false
	}
	function, at, _ := strings.Cut(strings.TrimSuffix(line, "\r"), "(")
	at, ended := strings.CutSuffix(at, ")")
	if i := strings.LastIndexByte(function, '.'); i >= 0 {
		function = function[strings.LastIndexByte(function[:i], '.')+1:]
	}
	function = function[strings.LastIndexByte(function, '/')+1:] // of a module
	if !ended || !isJavaCode(function) || !isJavaCode(at) || len(function)+len(at)+2 > maxPlace {
		return "", true
	}
	return function + ", " + at, true
}

// isJavaCode reports whether a text may be a name in code, or a file and a line.
func isJavaCode(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_$.:<>-", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
