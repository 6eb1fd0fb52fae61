package console

import (
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// stalledPhrases returns in words which groups of a source do not run, or not all of it.
func stalledPhrases(stalled []api.Stalled) (all []phrase) {
	for i := range stalled[:min(len(stalled), mostGuards)] {
		s := &stalled[i]
		text := fmt.Sprintf("%s: %s", s.Group, s.Text)
		if s.Lag != nil && *s.Lag > 0 {
			text += ", " + number.Of(*s.Lag, "record") + " behind"
		}
		all = append(all, phrase{Text: text, Red: true})
	}
	if more := len(stalled) - mostGuards; more > 0 {
		all = append(all, phrase{Text: number.Of(int64(more), "more group") + " with records that do not run", Red: true})
	}
	return all
}

// standstill says why no letters may come although records fail; nothing if none is known.
func standstill(t *operate.Topic, now time.Time) []phrase {
	return slices.Concat(guardPhrases(t.Guards, now), stalledPhrases(t.Stalled))
}

// standsStill reports whether a group of the source runs nothing, or not all.
func standsStill(t *operate.Topic) bool { return len(t.Guards)+len(t.Stalled) > 0 }

// standing returns the groups that run nothing, or not all, as guards.
func standing(t *operate.Topic) []api.Guard {
	all := slices.Clone(t.Guards)
	for i := range t.Stalled {
		all = append(all, api.Guard{Group: t.Stalled[i].Group})
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
