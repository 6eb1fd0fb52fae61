package selection

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a point in time. A duration counts back from now, a time without a zone is local,
// and empty text is the zero time.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, ok := ParseDuration(s); ok {
		if d < 0 {
			return time.Time{}, fmt.Errorf("%q lies in the future: 2h means two hours ago", s)
		}
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	for _, form := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a duration such as 90m or 2d, nor a time such as 2026-11-20, 2026-11-20T08:00 or 2026-11-20T08:00:00Z", s)
}

// ParseDuration knows days besides what Go knows, since incidents last over weekends.
func ParseDuration(s string) (time.Duration, bool) {
	var days int64
	if number, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseInt(number, 10, 16)
		if err != nil {
			return 0, false
		}
		days, s = n, rest
		if s == "" {
			s = "0s"
		}
	}
	d, err := time.ParseDuration(s)
	return time.Duration(days)*24*time.Hour + d, err == nil
}
