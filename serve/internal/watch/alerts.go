package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/duration"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// leastSuccess is the share of redriven letters that should succeed.
const leastSuccess = 0.9

// alertKind is one reason to alert about a topic. due returns the alert, or nil if there is none.
type alertKind struct {
	Name string
	Due  func(f *Figures, is Thresholds, now time.Time) *incident.Alert
	// Lasts reports that an incident of the kind is not over, although its alert may not be due:
	// the server has just begun to look, say. Nil for kinds of which only the letters tell.
	Lasts func(f *Figures, is Thresholds) bool
}

// AlertKinds are those of deploy/prometheus/alerts.yaml that need the topic, and the groups on its
// source.
var AlertKinds = []alertKind{
	{"open", func(f *Figures, is Thresholds, _ time.Time) *incident.Alert {
		switch {
		case is.PageOpen > 0 && f.Open >= is.PageOpen:
			return page("%s open", letters(f.Open))
		case is.WarnOpen > 0 && f.Open >= is.WarnOpen:
			return warn("%s open", letters(f.Open))
		}
		return nil
	}, nil},
	{"new", func(f *Figures, is Thresholds, _ time.Time) *incident.Alert {
		if is.New <= 0 || f.Recent() <= is.New {
			return nil
		}
		return page("%s came within %v", letters(f.Recent()), duration.Short(NewWithin))
	}, nil},
	{"oldest", func(f *Figures, is Thresholds, now time.Time) *incident.Alert {
		if age := now.Sub(f.Oldest); f.Oldest.IsZero() || is.Oldest < 0 || age <= is.Oldest {
			return nil
		}
		return page("the oldest open letter is older than %v", duration.Short(is.Oldest))
	}, nil},
	{"redrive-fails", func(f *Figures, _ Thresholds, _ time.Time) *incident.Alert {
		run := &f.LastRun
		share, failed, known := f.Success()
		switch {
		case f.Opened(run.ID): // see "rule"
			return nil
		case run.State == redrive.Aborted && f.Open+f.Pending > 0:
			a := warn("%s", aborted(run))
			a.Parts = []string{run.ID} // people want to know of each
			return a
		case run.State == redrive.Aborted || !known || share >= leastSuccess:
			return nil
		}
		return warn("of the last redrive, %s succeeded and %s failed again", letters(run.Counts.Succeeded), number.Format(failed))
	}, nil},
	{"new-class", func(f *Figures, _ Thresholds, _ time.Time) *incident.Alert {
		if len(f.NewClasses) == 0 {
			return nil
		}
		slices.Sort(f.NewClasses)
		a := warn("%s", firstLetters(f.NewClasses))
		a.Parts = f.NewClasses
		return a
	}, nil},
	{"rule", func(f *Figures, _ Thresholds, _ time.Time) *incident.Alert {
		var names, texts []string
		for i := range f.Circuits {
			if c := &f.Circuits[i]; c.Name() == "open" {
				names = append(names, c.Rule)
				texts = append(texts, fmt.Sprintf("the circuit of rule %s is open until %s, since %s", c.Rule, c.State.Until.UTC().Format(time.RFC3339), c.State.Why))
			}
		}
		if len(names) == 0 {
			return nil
		}
		a := warn("%s", strings.Join(texts, "; "))
		a.Parts = names
		return a
	}, nil},
	{"retention", func(f *Figures, is Thresholds, _ time.Time) *incident.Alert {
		if is.Retention < 0 || f.ExpiringSoon == 0 {
			return nil
		}
		return page("retention takes %s within %v", letters(f.ExpiringSoon), duration.Short(is.Retention))
	}, nil},
	standstillKind(held.KindHeld, func(is *Thresholds) time.Duration { return is.Held }),
	standstillKind(held.KindBlocked, func(is *Thresholds) time.Duration { return is.Blocked }),
	standstillKind(held.KindGone, func(is *Thresholds) time.Duration { return is.Gone }),
}

// DefaultGroup is the group of servers whose notes of incidents have no group in their names.
const DefaultGroup = "siding-serve"

// AlertNote names the note of a kind of incidents. Each group of servers has its own, since it has
// its own receivers.
func AlertNote(group, kind string) string {
	if group == DefaultGroup {
		return "alert/" + kind
	}
	return "alert/" + kind + "/" + group
}
