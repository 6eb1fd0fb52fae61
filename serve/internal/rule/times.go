package rule

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Times is a part of the week, as in "Mon-Fri 08:00-18:00" or "22:00-04:00". It ends before its
// end. A time that ends before it begins goes on into the next day.
type Times struct {
	days     [7]bool // on which it begins
	from, to int     // minutes of the day
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseTimes reads a part of the week.
func ParseTimes(text string) (t Times, err error) {
	wrong := fmt.Errorf("%q is no time: as in Mon-Fri 08:00-18:00, Sat,Sun or 22:00-04:00", text)
	t.to = 24 * 60
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > 2 {
		return t, wrong
	}
	clock := fields[len(fields)-1]
	switch named := strings.ToLower(fields[0]); {
	case len(fields) == 1 && strings.Contains(clock, ":"):
		t.days = [7]bool{true, true, true, true, true, true, true}
	default:
		for part := range strings.SplitSeq(named, ",") {
			first, last, isRange := strings.Cut(part, "-")
			from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
			if !isRange {
				to = from
			}
			if from < 0 || to < 0 {
				return t, wrong
			}
			for day := from; ; day = (day + 1) % 7 {
				t.days[day] = true
				if day == to {
					break
				}
			}
		}
		if len(fields) == 1 {
			return t, nil
		}
	}
	first, last, ok := strings.Cut(clock, "-")
	from, err1 := time.Parse("15:04", first)
	if last == "24:00" {
		last = "00:00"
	}
	to, err2 := time.Parse("15:04", last)
	if !ok || err1 != nil || err2 != nil {
		return t, wrong
	}
	t.from, t.to = from.Hour()*60+from.Minute(), to.Hour()*60+to.Minute()
	return t, nil
}

// Has reports whether a moment is within the time, by its own time zone.
func (t *Times) Has(at time.Time) bool {
	minute, day := at.Hour()*60+at.Minute(), int(at.Weekday())
	if t.from < t.to {
		return t.days[day] && minute >= t.from && minute < t.to
	}
	yesterday := (day + 6) % 7
	return t.days[day] && minute >= t.from || t.days[yesterday] && minute < t.to
}
