package headers

// Text, numbers and times within their limits.

import (
	"time"
	"unicode/utf8"

	"github.com/sidingkafka/siding/internal/reserved"
)

// noTime stands for a time that is not known, where none would mean another time.
const noTime = "-"

// valid returns at most limit bytes of s as valid UTF-8.
func valid(s string, limit int) string {
	if len(s) <= limit && utf8.ValidString(s) {
		return s
	}
	return string(appendText(nil, s, limit))
}

// appendText appends at most limit bytes of s as valid UTF-8.
func appendText(b []byte, s string, limit int) []byte {
	s = cut(s, limit)
	if utf8.ValidString(s) {
		return append(b, s...)
	}
	end := len(b) + limit
	for _, r := range s { // RuneError for invalid UTF-8
		if len(b)+utf8.RuneLen(r) > end {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

// cut shortens s to limit bytes without splitting a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[:max(limit, 0)]
	for back := 1; back < utf8.UTFMax && back <= len(s); back++ {
		if c := s[len(s)-back]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-back:]) {
				s = s[:len(s)-back]
			}
			break
		}
	}
	return s
}

func clamp(n int) int { return min(max(n, 0), MaxAttempts) }

func millis(t time.Time) int64 { return min(max(t.UnixMilli(), 0), reserved.MaxMillis) }

const fingerprintLen = 16

func validFingerprint(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == fingerprintLen
}
