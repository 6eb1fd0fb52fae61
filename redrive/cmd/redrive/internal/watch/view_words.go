package watch

// The state of a topic in words.

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// state is how a topic is, in a word. It is a promise to scripts.
type state string

const (
	unread  state = "unread" // not yet
	held    state = "held"   // a group holds records of the source back
	growing state = "growing"
	slowing state = "slowing" // letters came within recentFor, none within growsFor
	quiet   state = "quiet"
	waiting state = "pending" // none is open, and outcomes are pending
	settled state = "settled"
	empty   state = "empty" // there was never a letter, or none is left
)

// state returns how the topic is. Where a group holds it, few letters are no good sign.
func (v *view) state(now time.Time) state {
	switch {
	case v.looked.IsZero():
		return unread
	case v.isHeld():
		return held
	case v.open > 0 && v.recent > 0 && now.Sub(v.newest) < growsFor:
		return growing
	case v.open > 0 && v.recent > 0:
		return slowing
	case v.open > 0:
		return quiet
	case v.pending > 0:
		return waiting
	case v.resolved+v.duplicates > 0:
		return settled
	}
	return empty
}

// asOf returns the time of the numbers: now, unless the brokers do not answer.
func (v *view) asOf(now, silent time.Time) time.Time {
	if v.problem == nil && silent.IsZero() {
		return now
	}
	return v.looked
}

func (v *view) isHeld() bool {
	for i := range v.guards {
		if v.guards[i].Held {
			return true
		}
	}
	return false
}

// phrase is a line about a topic.
type phrase struct {
	text string
	tone output.Tone
}

// headline says how bad it is, whether it goes on, and how long it can wait. The numbers are as of
// a time.
func (v *view) headline(look output.Look, at time.Time) (all []phrase) {
	now := look.Now()
	say := func(tone output.Tone, format string, args ...any) {
		all = append(all, phrase{fmt.Sprintf(format, args...), tone})
	}
	for i := range v.guards[:min(len(v.guards), mostGuards)] {
		all = append(all, guardPhrase(&v.guards[i], look))
	}
	if more := len(v.guards) - mostGuards; more > 0 {
		say(output.Bad, "held or strained by %d more groups", more)
	}
	came := fmt.Sprintf("%d new in 5 min", v.recent)
	last := output.Duration(max(0, at.Sub(v.newest).Round(time.Second)))
	switch v.state(at) {
	case unread:
		return all
	case growing:
		say(output.Bad, "%s, still growing", came)
	case held:
		if v.recent > 0 {
			say(output.Bad, "%s, the last %s ago", came, last)
		}
	case slowing:
		say(output.Caution, "%s, the last %s ago", came, last)
	case quiet:
		say("", "quiet for %s", last)
	case waiting:
		say(output.Busy, "none open; the outcomes of redriven letters are pending")
	case settled:
		say(output.Good, "all settled")
	case empty:
		say(output.Good, "no dead letters")
	}
	return append(all, v.totals(now))
}

// totals are the counts, and how long they can wait.
func (v *view) totals(now time.Time) phrase {
	text := fmt.Sprintf("%d open", v.open)
	if v.open > 0 {
		text += fmt.Sprintf(", the oldest %s old", output.Duration(max(0, now.Sub(v.oldest).Round(time.Second))))
	}
	for _, c := range []struct {
		n    int64
		what string
	}{{v.pending, "pending"}, {v.resolved, "resolved"}, {v.duplicates, "duplicates"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	if v.open == 0 || v.retention <= 0 {
		return phrase{text, ""}
	}
	left := v.retention - now.Sub(v.oldest)
	if left <= 0 {
		return phrase{text + "; retention takes the first any moment", output.Bad}
	}
	tone := output.Tone("")
	if left < 48*time.Hour {
		tone = output.Bad
	}
	return phrase{text + "; retention takes the first in " + output.Duration(left), tone}
}

// mostGuards bounds the groups that a headline names.
const mostGuards = 3

// guardPhrase says that a group holds the source back, or runs it in a strain.
func guardPhrase(g *guards.Guard, look output.Look) phrase {
	p := phrase{"strained", output.Caution}
	if g.Held {
		p = phrase{"held", output.Bad}
	}
	if ago := look.Now().Sub(g.Since).Round(time.Second); ago >= 0 { // else a clock is wrong
		p.text += fmt.Sprintf(" since %s (%s)", look.Time(g.Since), output.Duration(ago))
	}
	p.text += fmt.Sprintf(" by %s (%d of %d partitions)", g.Group, g.Partitions, g.Of)
	switch {
	case g.Waiting == 1:
		p.text += ", 1 record waits"
	case g.Waiting >= 0:
		p.text += fmt.Sprintf(", %d records wait", g.Waiting)
	}
	if g.Class != "" {
		p.text += "; most failures are " + g.Class
	}
	return p
}

// tag is what to know of a group, in a word.
func (g *group) tag(held bool, now time.Time) (string, output.Tone) {
	switch {
	case g.failedAgain > 0:
		return "FAILED AGAIN", output.Bad
	case g.isNew:
		return "NEW", output.Caution
	case now.Sub(g.last) >= quietAfter && !held:
		return "QUIET", ""
	}
	return "", ""
}
