package classify

import (
	"bytes"
	"reflect"
	"runtime"
	"strconv"
	"strings"
)

// MaxStack bounds Result.Stack in bytes; whole frames are kept from the top.
const MaxStack = 4096

// panicFrames cuts the text of debug.Stack to the frames from the one that panicked on. The frames
// above it belong to the code that recovered.
func panicFrames(stack []byte) []byte {
	if bytes.HasPrefix(stack, []byte("goroutine ")) {
		_, stack, _ = bytes.Cut(stack, []byte("\n"))
	}
	if i := lineWithPrefix(stack, "panic("); i >= 0 {
		stack = skipFrame(stack[i:])
		// A nil dereference or an index out of range panics in the runtime.
		for bytes.HasPrefix(stack, []byte("runtime.")) {
			stack = skipFrame(stack)
		}
	}
	return wholeFrames(stack)
}

func lineWithPrefix(b []byte, prefix string) int {
	if bytes.HasPrefix(b, []byte(prefix)) {
		return 0
	}
	if i := bytes.Index(b, []byte("\n"+prefix)); i >= 0 {
		return i + 1
	}
	return -1
}

// skipFrame drops two lines: the function and its position.
func skipFrame(b []byte) []byte {
	_, b, _ = bytes.Cut(b, []byte("\n"))
	_, b, _ = bytes.Cut(b, []byte("\n"))
	return b
}

func wholeFrames(b []byte) []byte {
	if len(b) <= MaxStack {
		return b
	}
	end := 0
	for rest := b; ; {
		rest = skipFrame(rest)
		if n := len(b) - len(rest); n <= MaxStack && len(rest) > 0 {
			end = n
			continue
		}
		return b[:end]
	}
}

// topFrame returns the function of the first frame, without arguments and line.
func topFrame(stack string) string {
	line, _, _ := strings.Cut(stack, "\n")
	if i := strings.LastIndexByte(line, '('); i > 0 && strings.HasSuffix(line, ")") {
		line = line[:i]
	}
	return line
}

// isStackMethod reports whether t has a method StackTrace() of a slice of
// program counters, as the errors of github.com/pkg/errors and its successors.
func isStackMethod(t reflect.Type) bool {
	m, ok := t.MethodByName("StackTrace")
	if !ok || m.Type.NumIn() != 1 || m.Type.NumOut() != 1 {
		return false
	}
	out := m.Type.Out(0)
	return out.Kind() == reflect.Slice && out.Elem().Kind() == reflect.Uintptr
}

// tracedFrames renders the stack that err itself carries, in the form of
// debug.Stack.
func tracedFrames(err error, s *shape) (stack string) {
	defer survive()
	var pcs []uintptr
	if s.has&hasCallers != 0 {
		pcs = err.(callers).Callers()
	} else {
		trace := reflect.ValueOf(err).MethodByName("StackTrace").Call(nil)[0]
		for i := range min(trace.Len(), 64) {
			pcs = append(pcs, uintptr(trace.Index(i).Uint()))
		}
	}
	if len(pcs) == 0 {
		return ""
	}
	var b []byte
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		if n := len(f.Function) + len(f.File) + 32; len(b)+n > MaxStack {
			return string(b)
		}
		if f.Function != "" {
			b = append(b, f.Function...)
			b = append(b, "()\n\t"...)
			b = append(b, f.File...)
			b = append(b, ':')
			b = strconv.AppendInt(b, int64(f.Line), 10)
			b = append(b, '\n')
		}
		if !more {
			return string(b)
		}
	}
}
