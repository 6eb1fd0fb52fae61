package operate

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// Times counts letters by class and time, as [letterindex.Index.Times] does.
func Times(ctx context.Context, d *Desk, who *access.Identity, topic string, f *api.Filter, from time.Time, by time.Duration, n, most int) ([]letterindex.Series, error) {
	t, sel, err := choose(ctx, d, who, topic, f, access.Viewer)
	if err != nil {
		return nil, err
	}
	return t.Index.Times(&sel.Filter, from, by, n, most), nil
}

// History is what was done on a topic besides its runs, the latest first.
type History struct {
	// Acts are what people did to letters without a run.
	Acts []letterindex.Act
	// Prunes are what was deleted.
	Prunes []ledgerrecord.Prune
	// RuleActs are who paused rules and let them go on.
	RuleActs []RuleAct
}

// RuleAct is a pause of a rule on a topic, or the end of one.
type RuleAct struct {
	Rule    string
	Paused  bool
	By, Why string
	At      time.Time
}

// TopicHistory returns what was done on a topic besides its runs.
func TopicHistory(ctx context.Context, d *Desk, who *access.Identity, topic string) (all History, err error) {
	t, err := TopicFor(ctx, d, who, topic, access.Viewer)
	if err != nil {
		return History{}, err
	}
	hide := d.cfg.Redact
	all.Acts = t.Index.Acts()
	for i := range all.Acts {
		all.Acts[i].Why = hide.Text(all.Acts[i].Why)
	}
	all.Prunes = t.Index.Prunes()
	for i := range all.Prunes {
		p := &all.Prunes[i]
		p.Why, p.Archive, p.Error = hide.Text(p.Why), failure.Outside(hide, p.Archive), failure.Outside(hide, p.Error)
	}
	for _, name := range watch.DecidedRules(t) {
		for _, is := range watch.Decisions(t, name) {
			if is.Do == watch.DoPause || is.Do == watch.DoResume {
				all.RuleActs = append(all.RuleActs, RuleAct{Rule: name, Paused: is.Do == watch.DoPause, By: is.By, Why: hide.Text(is.Why), At: is.At})
			}
		}
	}
	return all, nil
}
