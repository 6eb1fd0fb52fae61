package watch

import (
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/incident"
)

// Standstills are why records of a topic's source do not run.
type Standstills struct {
	All   []held.Standstill
	Whole bool // the groups could all be read: else what is missing may go on
}

// StandstillsOf returns those of a topic. Their texts are for people outside of the server.
func StandstillsOf(t *Topic, groups *held.Watch) (is Standstills) {
	all, whole := groups.Standstills(t.Source)
	for _, s := range all {
		s.Text = failure.Outside(t.view.Redact, s.Text) // a group names the class of its failures
		is.All = append(is.All, s)
	}
	is.Whole = whole
	return is
}

// standstillKind is a reason to alert about groups on the topic's source, if it lasts longer than a
// threshold.
func standstillKind(kind string, limit func(*Thresholds) time.Duration) alertKind {
	due := func(f *Figures, is Thresholds, now time.Time) *incident.Alert {
		var groups, texts []string
		for _, s := range f.Standstills.All {
			if most := limit(&is); s.Kind == kind && most > 0 && now.Sub(s.Since) >= most {
				groups, texts = append(groups, s.Group), append(texts, s.Text)
			}
		}
		if len(groups) == 0 {
			return nil
		}
		a := page("%s", strings.Join(texts[:min(len(texts), mostStandstills)], "; "))
		a.Parts = groups
		return a
	}
	lasts := func(f *Figures, is Thresholds) bool {
		for _, s := range f.Standstills.All {
			if s.Kind == kind {
				return limit(&is) > 0
			}
		}
		return limit(&is) > 0 && !f.Standstills.Whole
	}
	return alertKind{kind, due, lasts}
}

// mostStandstills bounds the groups that an alert describes.
const mostStandstills = 5
