package console

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

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

// growsFor is how long a topic grows after its last letter: letters come at no regular times.
const growsFor = time.Minute

// isGrowing reports whether letters are coming.
func isGrowing(t *operate.Topic, now time.Time) bool {
	return t.Recent > 0 && (t.Newest == nil || now.Sub(*t.Newest) < growsFor)
}
