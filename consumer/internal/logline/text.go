package logline

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxText bounds a text in a line, in bytes. The top of a panic's stack fits.
const MaxText = 2048

// lineBreak stands for line breaks that follow each other, and for the blanks behind them.
const lineBreak = " | "

// Text returns s as one line of at most [MaxText] bytes and three more, which show that there was
// more. Line breaks become " | ", and tabs become blanks. Other control characters, invisible ones
// and invalid UTF-8 become escapes as in Go's strings.
func Text(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i, broken := 0, false; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		is := s[i : i+n]
		i += n
		switch {
		case isBreak(r):
			broken = true
			continue
		case r == '\t' || r == ' ' && broken:
			is = " "
			if broken {
				continue // the indentation of the next line
			}
		case r == utf8.RuneError && n == 1:
			is = fmt.Sprintf(`\x%02x`, is[0])
		case !unicode.IsPrint(r):
			is = strings.Trim(fmt.Sprintf("%+q", r), "'")
		}
		if broken {
			if b.Len() > 0 {
				is = lineBreak + is
			}
			broken = false
		}
		if b.Len()+len(is) > MaxText {
			b.WriteString("…")
			break
		}
		b.WriteString(is)
	}
	return b.String()
}

func isPlain(s string) bool {
	if len(s) > MaxText {
		return false
	}
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// Words returns a duration as people write it: 1m30s, 2h, 1.5s, 12ms. It has the precision that a
// reader needs.
func Words(d time.Duration) string {
	switch size := d.Abs(); {
	case size >= time.Minute:
		d = d.Round(time.Second)
	case size >= time.Second:
		d = d.Round(10 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
