package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// adoptEvery is how often a server tries to resume a run of another one that ended.
const adoptEvery = 10 * time.Second

// Adopt goes on with the runs on topics that this server owns, if a server began them and no
// process owns them any more.
func (a *Rules) Adopt(running *sync.WaitGroup) {
	rules := a.cfg.Desk.RuleList()
	for _, t := range a.cfg.Cluster.Owned() {
		for _, o := range t.Known() {
			if !t.Silent(&o) || a.cfg.Desk.Runner.Of(o.Topic, o.ID, &o) != nil {
				continue
			}
			note, ours := watch.RunNotes(t)[o.ID]
			if name, ofRule := strings.CutPrefix(o.By, watch.RulePrefix); ofRule && !ours {
				// The rule itself goes on with its runs, unless it has left the file. On a
				// manual-only topic an operator does.
				left := !slices.ContainsFunc(rules, func(r rule.Rule) bool { return r.Name == name && r.Covers(t.DeadLetterTopic.Topic) })
				ours = left && !t.Settings.ManualOnly && slices.ContainsFunc(watch.Decisions(t, name), func(d watch.Decision) bool { return d.Run == o.ID })
				note.By = o.By
			}
			if !ours || !t.Adopting.CompareAndSwap(false, true) {
				continue
			}
			running.Go(func() {
				ctx, err := a.cfg.Desk.Runner.Running()
				if err != nil {
					return
				}
				_, err = a.cfg.Desk.Runner.Launch(o.Topic, func(ctx context.Context, on func(redrive.Event)) (redrive.Outcome, error) {
					return a.cfg.Redriver.Resume(ctx, o.Topic, o.ID, redrive.RunOptions{By: note.By, On: on}, redrive.IfSilent())
				})
				if refused, ok := errors.AsType[*redrive.RefusedError](err); err != nil && ctx.Err() == nil && (!ok || refused.Reason != redrive.RefusedOwned) && a.cfg.Desk.Runner.Block(o.Topic, o.ID, err) {
					a.cfg.Log.Warn("siding: a run of a server that ended could not be resumed", "topic", o.Topic, "run", o.ID, "error", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(adoptEvery):
				}
				t.Adopting.Store(false)
			})
		}
	}
}
