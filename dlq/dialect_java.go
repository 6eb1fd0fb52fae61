package dlq

// What a Java stack trace says, and the names of Java classes.

import (
	"bytes"
	"strings"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

// causedBy begins the line of a cause in a stack trace.
const causedBy = "\nCaused by: "

// innermost returns what a Java stack trace says of its innermost cause: the class, the message,
// and the function at the top without its file and line. Each is empty if the trace has none.
func innermost(trace []byte) (class, message, frame string) {
	const at = "\tat "
	if i := bytes.LastIndex(trace, []byte(causedBy)); i >= 0 {
		trace = trace[i+len(causedBy):]
	}
	line, rest, _ := bytes.Cut(trace, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	name, said, _ := bytes.Cut(line, []byte(": "))
	if isJavaName(name) {
		class, message = string(name), string(said)
	}
	if i := bytes.Index(rest, []byte(at)); i == 0 || i > 0 && rest[i-1] == '\n' {
		frame = string(rest[i+len(at) : i+len(at)+endOfFrame(rest[i+len(at):])])
	}
	return class, message, frame
}

// endOfFrame returns where the file of a frame begins, or where its line ends.
func endOfFrame(b []byte) int {
	if i := bytes.IndexAny(b, "(\r\n"); i >= 0 {
		return i
	}
	return len(b)
}

// shortTrace returns a trace, or of one that is too long the innermost cause alone: the frames
// before it are those of the framework.
func shortTrace(trace string) string {
	if i := strings.LastIndex(trace, causedBy); len(trace) > headers.MaxStack && i >= 0 {
		return trace[i+1:]
	}
	return trace
}

// isJavaName reports whether a text may be the name of a class.
func isJavaName(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c == ':' || c == '(' {
			return false
		}
	}
	return len(b) > 0
}

// cleanedClass returns a class of another program's as one of siding's. Of one that is too long the
// end stays, which is what tells classes of one package apart.
func cleanedClass(class string) string {
	class = strings.TrimSpace(class)
	if class == "" {
		return classify.ClassUnclassified
	}
	if runes := []rune(class); len(runes) > classify.MaxClass {
		class = string(runes[len(runes)-classify.MaxClass:])
	}
	return classify.CleanClass(class)
}
