package serve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/duration"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// leastSuccess is the share of redriven letters that should succeed.
const leastSuccess = 0.9

// alertKind is one reason to alert about a topic. due returns the alert, or nil if there is none.
type alertKind struct {
	name string
	due  func(f *figures, is Thresholds, now time.Time) *incident.Alert
}

// alertKinds are those of deploy/prometheus/alerts.yaml that need nothing but the topic.
var alertKinds = []alertKind{
	{"open", func(f *figures, is Thresholds, _ time.Time) *incident.Alert {
		switch {
		case is.PageOpen > 0 && f.open >= is.PageOpen:
			return page("%s open", letters(f.open))
		case is.WarnOpen > 0 && f.open >= is.WarnOpen:
			return warn("%s open", letters(f.open))
		}
		return nil
	}},
	{"new", func(f *figures, is Thresholds, _ time.Time) *incident.Alert {
		if is.New <= 0 || f.recent() <= is.New {
			return nil
		}
		return page("%s came within %v", letters(f.recent()), duration.Short(newWithin))
	}},
	{"oldest", func(f *figures, is Thresholds, now time.Time) *incident.Alert {
		if age := now.Sub(f.oldest); f.oldest.IsZero() || is.Oldest < 0 || age <= is.Oldest {
			return nil
		}
		return page("the oldest open letter is older than %v", duration.Short(is.Oldest))
	}},
	{"redrive-fails", func(f *figures, _ Thresholds, _ time.Time) *incident.Alert {
		run := &f.lastRun
		share, failed, known := f.success()
		switch {
		case f.opened(run.ID): // see "rule"
			return nil
		case run.State == redrive.Aborted && f.open+f.pending > 0:
			a := warn("%s", aborted(run))
			a.Parts = []string{run.ID} // people want to know of each
			return a
		case run.State == redrive.Aborted || !known || share >= leastSuccess:
			return nil
		}
		return warn("of the last redrive, %s succeeded and %s failed again", letters(run.Counts.Succeeded), number.Format(failed))
	}},
	{"new-class", func(f *figures, _ Thresholds, _ time.Time) *incident.Alert {
		if len(f.newClasses) == 0 {
			return nil
		}
		slices.Sort(f.newClasses)
		a := warn("%s", firstLetters(f.newClasses))
		a.Parts = f.newClasses
		return a
	}},
	{"rule", func(f *figures, _ Thresholds, _ time.Time) *incident.Alert {
		var names, texts []string
		for i := range f.circuits {
			if c := &f.circuits[i]; c.name() == "open" {
				names = append(names, c.rule)
				texts = append(texts, fmt.Sprintf("the circuit of rule %s is open until %s, since %s", c.rule, c.state.Until.UTC().Format(time.RFC3339), c.state.Why))
			}
		}
		if len(names) == 0 {
			return nil
		}
		a := warn("%s", strings.Join(texts, "; "))
		a.Parts = names
		return a
	}},
	{"retention", func(f *figures, is Thresholds, _ time.Time) *incident.Alert {
		if is.Retention < 0 || f.expiringSoon == 0 {
			return nil
		}
		return page("retention takes %s within %v", letters(f.expiringSoon), duration.Short(is.Retention))
	}},
}
