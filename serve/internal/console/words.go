package console

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// span returns a duration in its largest whole unit, as in "4 h" and "20 s".
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + " s"
	case d < time.Hour:
		return strconv.FormatInt(int64(d/time.Minute), 10) + " min"
	case d < 48*time.Hour:
		return strconv.FormatInt(int64(d/time.Hour), 10) + " h"
	}
	return number.Format(int64(d/(24*time.Hour))) + " d"
}

// moment is a time as a page shows it: relative, with the absolute one beside it. The zero value is
// a time that is not known.
type moment struct {
	Text  string // "4 h ago", or "in 9 d"
	Title string // "2026-11-23 17:02:22 UTC"
	ISO   string // for machines
}

func momentOf(at, now time.Time) moment {
	if at.IsZero() {
		return moment{}
	}
	at = at.UTC()
	m := moment{Title: at.Format("2006-01-02 15:04:05 UTC"), ISO: at.Format(time.RFC3339)}
	switch d := now.Sub(at); {
	case d.Abs() < time.Second:
		m.Text = "now"
	case d < 0:
		m.Text = "in " + span(d)
	default:
		m.Text = span(d) + " ago"
	}
	return m
}

// momentAt is momentOf of a time that may be missing.
func momentAt(at *time.Time, now time.Time) moment {
	if at == nil {
		return moment{}
	}
	return momentOf(*at, now)
}

// phrase is a part of a sentence. Red ones are about failures that go on.
type phrase struct {
	Text  string
	Red   bool
	At    moment // follows the text, if it is known
	After string // follows that
}

// list joins words, as in "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// takesRole says which role it takes to do something, and who gives it.
func takesRole(role access.Role, topic string) string {
	return "To bring letters back or to discard them takes the role " + role.String() + " on " + topic + ". Whoever configures the server gives it, by your name or by one of your groups."
}

// idOf returns an id of an element about something.
func idOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}
