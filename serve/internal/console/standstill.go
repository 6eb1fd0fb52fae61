package console

import (
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/serve/api"
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
