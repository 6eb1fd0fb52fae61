package text

import (
	"fmt"
	"strconv"
	"strings"
)

// Depth is how deep brackets of JSON nest, without those in its strings.
func Depth(s string) int {
	return depth(s, func(s string) int {
		if s[0] == '"' {
			return quoted(s, false)
		}
		return 0
	})
}

// DepthOfProto is how deep brackets of protobuf's language nest, without those in its strings and
// comments.
func DepthOfProto(s string) int {
	return depth(s, func(s string) int {
		switch {
		case strings.HasPrefix(s, "//"):
			if i := strings.IndexByte(s, '\n'); i >= 0 {
				return i + 1
			}
			return len(s)
		case strings.HasPrefix(s, "/*"):
			if i := strings.Index(s[2:], "*/"); i >= 0 {
				return i + 4
			}
			return len(s)
		case s[0] == '"' || s[0] == '\'':
			return quoted(s, true)
		}
		return 0
	})
}

// mostNumber bounds the characters of a number, and the zeros that its exponent stands for.
const mostNumber = 1000

// Numbers says whether a number of valid JSON is so long, or so large, that it takes long to
// compare it.
func Numbers(s string) error {
	for i := 0; i < len(s); {
		switch {
		case s[i] == '"':
			i += quoted(s[i:], false)
			continue
		case s[i] != '-' && (s[i] < '0' || s[i] > '9'):
			i++
			continue
		}
		n := len(s) - i
		if end := strings.IndexFunc(s[i:], func(r rune) bool { return !strings.ContainsRune("+-.0123456789eE", r) }); end >= 0 {
			n = end
		}
		number := s[i : i+n]
		if at := strings.IndexAny(number, "eE"); len(number) > mostNumber || at >= 0 && tooLarge(number[at+1:]) {
			return fmt.Errorf("a number is too long or too large: %.20s", number)
		}
		i += n
	}
	return nil
}

func tooLarge(exponent string) bool {
	e, err := strconv.Atoi(exponent)
	return err != nil || e > mostNumber || e < -mostNumber
}

// depth is how deep brackets nest. skip returns how many bytes are not looked at.
func depth(s string, skip func(string) int) (most int) {
	now := 0
	for i := 0; i < len(s); {
		if n := skip(s[i:]); n > 0 {
			i += n
			continue
		}
		switch s[i] {
		case '{', '[', '(', '<':
			now++
			most = max(most, now)
		case '}', ']', ')', '>':
			now = max(now-1, 0)
		}
		i++
	}
	return most
}

// quoted is the length of a string in quotes. One that does not end on its line is skipped so far
// only, if lines end strings.
func quoted(s string, lines bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == s[0], lines && s[i] == '\n':
			return i + 1
		}
	}
	return len(s)
}
