package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape makes text from anywhere harmless to a terminal. What cannot be printed becomes text such
// as \n, \x1b or \u202e: control characters, invisible characters that turn the direction of text,
// bytes that are no UTF-8. Other text comes back as it is, backslashes too.
func Escape(s string) string {
	is, _ := escape(s, "", math.MaxInt)
	return is
}

// escape is [Escape] but for some characters, and for as much of a text as takes at most so many
// bytes. It returns how many bytes of the text these are.
func escape(s, but string, most int) (is string, n int) {
	var b strings.Builder
	var quoted [16]byte
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		part := append(quoted[:0], s[i:i+size]...)
		if !unicode.IsPrint(r) && !strings.ContainsRune(but, r) || r == utf8.RuneError && size == 1 {
			part = strconv.AppendQuote(quoted[:0], s[i:i+size])
			part = part[1 : len(part)-1]
		}
		if b.Len()+len(part) > most {
			return b.String(), i
		}
		b.Write(part)
	}
	return b.String(), len(s)
}

// escapeJSON escapes what encoding/json leaves raw although a terminal acts on it: DEL, the C1
// control characters (U+009B begins a command as ESC [ does) and invisible characters. They occur
// in strings only, so the JSON means the same.
func escapeJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if !hidden(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, half := range utf16.Encode([]rune{r}) { // JSON knows the high ones by two halves
			out = fmt.Appendf(out, `\u%04x`, half)
		}
	}
	return out
}

// hidden leaves line breaks alone, which stand between the parts of JSON, never in its strings.
func hidden(r rune) bool {
	return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}
