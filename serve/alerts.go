package serve

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
		share, known := f.success()
		if !known || share >= leastSuccess {
			return nil
		}
		return warn("of the last redrive, %s succeeded and %s failed again", letters(f.lastRun.Succeeded), number.Format(f.lastRun.Failed))
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
				texts = append(texts, fmt.Sprintf("the circuit of rule %s is open until %s", c.rule, c.state.Until.UTC().Format(time.RFC3339)))
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

func warn(format string, args ...any) *incident.Alert {
	return &incident.Alert{Severity: incident.Warn, Text: fmt.Sprintf(format, args...)}
}

func page(format string, args ...any) *incident.Alert {
	return &incident.Alert{Severity: incident.Page, Text: fmt.Sprintf(format, args...)}
}

// some lists names, the first ten of them.
func some(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// firstLetters says of which classes there are letters for the first time. The classes are sorted;
// an empty one stands for letters without a class.
func firstLetters(classes []string) string {
	switch without := classes[0] == ""; {
	case without && len(classes) == 1:
		return "the first letters without a class"
	case without:
		return "the first letters of " + some(classes[1:]) + ", and the first without a class"
	}
	return "the first letters of " + some(classes)
}

func letters(n int64) string { return number.Of(n, "letter") }
