package output

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text from anywhere harmless to a terminal: what cannot be printed (control characters, the invisible
// ones that turn the direction of text, bytes that are no UTF-8) becomes \n, \x1b or \u202e. Text without any of it
// comes back as it is, backslashes too.
func Escape(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unprintable(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// EscapeLines is [Escape] for text whose line breaks are meant.
func EscapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(Escape(line), `\t`, "\t")
	}
	return strings.Join(lines, "\n")
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// escapeJSON escapes what encoding/json leaves raw in strings although a terminal acts on it: DEL, the C1 control
// characters (U+009B begins a command like ESC [ does) and the invisible ones. All of it stands in strings, so the JSON
// means what it meant.
func escapeJSON(b []byte) []byte {
	if bytes.IndexFunc(b, hidden) < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case !hidden(r):
			out = append(out, b[i:i+size]...)
		case r > 0xffff:
			// JSON knows these by their two halves in UTF-16.
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}

// hidden leaves line breaks alone, which stand between the parts of JSON, never in its strings.
func hidden(r rune) bool {
	return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}
