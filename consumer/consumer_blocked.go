package consumer

import (
	"context"
	"time"
)

// blockedPoll is the interval at which logBlocked looks at the lanes. No event comes when a lane is
// blocked: nothing happens any more.
const blockedPoll = 5 * time.Second

// logBlocked logs, until ctx ends, that lanes became blocked and that they no longer are. All lanes
// that changed between two looks share a line: an unreachable broker blocks hundreds.
func (c *Consumer) logBlocked(ctx context.Context) {
	t := time.NewTicker(blockedPoll)
	defer t.Stop()
	logged := map[*lane]time.Time{} // since when
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			c.logBlockedChanges(now, logged)
		}
	}
}

// logBlockedChanges logs which lanes are blocked and not in logged, and the reverse. It updates it.
func (c *Consumer) logBlockedChanges(now time.Time, logged map[*lane]time.Time) {
	var began, ended []*lane
	var first time.Time
	var why string
	for _, l := range c.lanesNow() {
		since, because := inspection{l}.blocked(now)
		if _, known := logged[l]; known || because == "" {
			continue
		}
		if began = append(began, l); first.IsZero() || since.Before(first) {
			first, why = since, because
		}
		logged[l] = since
	}
	longest := time.Duration(0)
	for l, since := range logged {
		if _, because := (inspection{l}).blocked(now); because != "" {
			continue
		}
		delete(logged, l)
		if !l.closing() { // else the group revoked it, which has a line
			ended, longest = append(ended, l), max(longest, now.Sub(since))
		}
	}
	if len(began) > 0 {
		c.log.Warn("siding: lanes are blocked", "lanes", len(began), "blocked_now", len(logged), "since", first, "why", why,
			"partitions", partitionsText(sourcesOf(began)))
	}
	if len(ended) > 0 {
		c.log.Info("siding: lanes are no longer blocked", "lanes", len(ended), "blocked_now", len(logged), "lasted", longest,
			"partitions", partitionsText(sourcesOf(ended)))
	}
}
