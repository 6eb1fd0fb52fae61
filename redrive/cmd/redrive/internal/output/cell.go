package output

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cells hold nil (nothing is known), strings, []string, bools, integers, floats, and:
//   - time.Time: local time in tables, RFC 3339 in UTC with milliseconds in JSON. The zero time is
//     none.
//   - [Ago]: the same in JSON, "3m ago" or "in 2d" in tables.
//   - time.Duration: 5m in tables, milliseconds in JSON.
//   - [Pair]: one thing for tables and another for JSON.
//   - anything else, in JSON only, as encoding/json writes it.

// Ago is a time that a table shows by its distance from now.
type Ago time.Time

// Pair is a cell that tables and JSON show differently.
type Pair struct {
	Table string
	JSON  any
}

// none is what a table shows for nothing.
const none = "-"

// Look is how tables show times.
type Look struct {
	// Now is what Ago is measured from.
	Now func() time.Time
	// Zone is that of times.
	Zone *time.Location
}

func (l Look) text(cell any) string {
	switch c := cell.(type) {
	case nil:
		return none
	case string:
		return orNone(Escape(c))
	case []string:
		return orNone(Escape(strings.Join(c, ", ")))
	case bool:
		if c {
			return "yes"
		}
		return "no"
	case float64:
		return strconv.FormatFloat(c, 'f', -1, 64)
	case time.Time:
		return l.Time(c)
	case Ago:
		return l.ago(time.Time(c))
	case time.Duration:
		return Duration(c)
	case Pair:
		return orNone(Escape(c.Table))
	}
	return Escape(fmt.Sprint(cell))
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// Time is a time as tables show it.
func (l Look) Time(t time.Time) string {
	if t.IsZero() {
		return none
	}
	form := "2006-01-02 15:04:05"
	if l.Zone == time.UTC {
		form += "Z"
	}
	return t.In(l.Zone).Format(form)
}

func (l Look) ago(t time.Time) string {
	if t.IsZero() {
		return none
	}
	d := l.Now().Sub(t).Round(time.Second)
	switch {
	case d > 0:
		return Duration(d) + " ago"
	case d < 0:
		return "in " + Duration(-d)
	}
	return "now"
}

// Duration is a duration by its two largest units, rounded down: 3d4h, 2h5m, 42s. Below a second it
// is exact.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	text, parts := "", 0
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if n := d / unit; n > 0 && parts < 2 {
			text += fmt.Sprintf("%d%c", n, "dhms"[i])
		}
		if d %= unit; text != "" {
			parts++
		}
	}
	return cmp.Or(text, d.String())
}

// value is the cell as encoding/json is to see it.
func value(cell any) any {
	switch c := cell.(type) {
	case time.Time:
		return utc(c)
	case Ago:
		return utc(time.Time(c))
	case time.Duration:
		return c.Milliseconds()
	case Pair:
		return value(c.JSON)
	case []string:
		if c == nil {
			return []string{}
		}
	}
	return cell
}

func utc(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
