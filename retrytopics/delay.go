package retrytopics

import (
	"strings"
	"time"
)

// FormatDelay formats a delay as in a tier's name: Go's form without zero units, so "5s", "5m",
// "1h30m", "1.5s".
func FormatDelay(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if i := strings.Index(s, "h0m"); i >= 0 {
		s = s[:i+1] + s[i+len("h0m"):]
	}
	return s
}

// ParseDelay parses the output of [FormatDelay]. It returns false for all else: forms that are not
// the shortest ("60s"), and delays that are not positive or not whole milliseconds.
func ParseDelay(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	if err != nil || delayProblem(d) != nil || FormatDelay(d) != s {
		return 0, false
	}
	return d, true
}
