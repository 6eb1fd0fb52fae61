package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
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

// growsFor is how long a topic grows after its last letter: letters come at no regular times.
const growsFor = time.Minute

// isGrowing reports whether letters are coming.
func isGrowing(t *operate.Topic, now time.Time) bool {
	return t.Recent > 0 && (t.Newest == nil || now.Sub(*t.Newest) < growsFor)
}

// sentence says how a topic is: how bad it is, whether it goes on, and how long it can wait.
func sentence(t *operate.Topic, now time.Time) (all []phrase) {
	add := func(red bool, format string, args ...any) {
		all = append(all, phrase{Text: fmt.Sprintf(format, args...), Red: red})
	}
	at := now // as of when the numbers are
	if t.Silent && t.Known != nil {
		at = *t.Known
		all = append(all, phrase{Text: "as of", Red: true, At: momentOf(at, now)})
	}
	all = append(all, standstill(t, now)...)
	switch {
	case t.Known == nil && t.Unread > 0:
		add(false, "still being counted: %s to read", number.Of(t.Unread, "offset"))
	case t.Known == nil:
		add(false, "not counted yet")
	}
	switch {
	case t.Open > 0:
		add(true, "%s open", number.Format(t.Open))
	case t.Known == nil:
		return all // 0 would be a guess
	case t.Pending == 0 && !standsStill(t):
		add(false, "all settled")
	default:
		add(false, "0 open")
	}
	if t.Pending > 0 {
		add(false, "%s redriven, outcome pending", number.Format(t.Pending))
	}
	if t.Open == 0 {
		return all
	}
	switch {
	case isGrowing(t, now):
		add(true, "growing, %s in the last 5 min", number.Format(t.Recent))
	case t.Recent > 0:
		add(true, "%s in the last 5 min", number.Format(t.Recent))
	}
	switch {
	case t.Newest == nil || isGrowing(t, now):
	case t.Newest.After(now):
		all = append(all, phrase{Text: "the newest has a time that is yet to come,", At: momentOf(*t.Newest, now)})
	case !standsStill(t): // else letters stop for another reason
		add(false, "quiet for %s", span(max(at.Sub(*t.Newest), 0)))
	}
	if t.Oldest == nil {
		return all
	}
	all = append(all, phrase{Text: "oldest", At: momentOf(*t.Oldest, now)})
	if t.Retention > 0 {
		left := t.Retention - now.Sub(*t.Oldest)
		if left <= 0 {
			add(true, "retention takes the first any moment")
		} else {
			add(left < 48*time.Hour, "retention takes the first in %s", span(left))
		}
	}
	return all
}

// mostGuards bounds the groups that a sentence names: the worst of them.
const mostGuards = 3

// guardPhrases returns in words which groups hold a source back, or run it in a strain.
func guardPhrases(guards []api.Guard, now time.Time) (all []phrase) {
	for i := range guards[:min(len(guards), mostGuards)] {
		g := &guards[i]
		p := phrase{Text: g.State, Red: g.State == held.Held}
		if !g.Since.After(now) { // else the group's clock is wrong
			p.Text, p.At = g.State+" since", momentOf(g.Since, now)
		}
		p.After = fmt.Sprintf("by %s (%d of %s)", g.Group, g.Partitions, number.Of(int64(g.Of), "partition"))
		switch {
		case g.Waiting == nil:
		case *g.Waiting == 1:
			p.After += ", 1 record waits"
		default:
			p.After += ", " + number.Of(*g.Waiting, "record") + " wait"
		}
		if g.Class != "" {
			p.After += ", most failures are " + g.Class
		}
		all = append(all, p)
	}
	if more := len(guards) - mostGuards; more > 0 {
		all = append(all, phrase{Text: "held or strained by " + number.Of(int64(more), "more group")})
	}
	return all
}

// isHeldBy reports whether one of some consumer groups is among guards.
func isHeldBy(guards []api.Guard, groups []string) bool {
	return slices.ContainsFunc(guards, func(g api.Guard) bool { return slices.Contains(groups, g.Group) })
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
