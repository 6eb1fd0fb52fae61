package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// memberLog logs what becomes of the membership and its lanes.
type memberLog struct{ *Consumer }

// logStarting logs which program begins to consume what.
func (c memberLog) logStarting() {
	c.log.Info("siding: starting", appendTexts([]any{"topics", shorten(c.cfg.Topics), "siding", softwareVersion()},
		"version", c.cfg.Version, "environment", c.cfg.Environment, "host", c.host)...)
}

// The first line about a join that goes on comes after joinFirst, another one each joinInterval.
const (
	joinFirst    = 5 * time.Second
	joinInterval = 30 * time.Second
)

// logJoining logs, until ctx ends, that a join takes long. After a crash it does: the group awaits
// the session timeout of the member that died.
func (c memberLog) logJoining(ctx context.Context) {
	began := time.Now()
	t := time.NewTicker(joinFirst)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			h, _ := c.membership.Health(now)
			if h.Since.Before(began) {
				h.Since = began // the start took that time
			}
			if waited := now.Sub(h.Since); !h.Joined && waited >= joinFirst {
				c.throttle.Once("joining", joinInterval, func() {
					if strings.Contains(h.Why, kerr.InconsistentGroupProtocol.Message) {
						c.log.Warn("siding: the group's members have no balancer in common with this one; give all of them the same kgo.Balancers, or stop the others",
							"waited", waited, "balancers", c.balancers(), "error", h.Why)
						return
					}
					c.log.Info("siding: waiting to join the group: a former member's session may have to time out",
						appendTexts([]any{"waited", waited}, "error", h.Why)...)
				})
			}
		}
	}
}

// balancers returns the names of the balancers that the member offers to its group.
func (c memberLog) balancers() (names []string) {
	all, _ := c.retryCl.OptValue(kgo.Balancers).([]kgo.GroupBalancer)
	for _, b := range all {
		names = append(names, b.ProtocolName())
	}
	return names
}

// logAssigned logs that the member joined, if it did just now, and which lanes it was assigned.
func (c memberLog) logAssigned(member string, added map[string][]int32) {
	joined := c.joinLogged.CompareAndSwap(false, true)
	if joined {
		protocol := "classic"
		if !c.classic {
			protocol = "consumer"
		}
		c.log.Info("siding: joined the group", "member", member, "protocol", protocol, "topics", shorten(c.cfg.Topics))
	}
	n := 0
	for _, partitions := range added {
		n += len(partitions)
	}
	if joined || n > 0 {
		c.log.Info("siding: lanes assigned", "lanes", n, "lanes_now", c.laneCount.Load(), "partitions", partitionsText(added))
	}
}

// logDraining logs that lanes begin to drain.
func (c memberLog) logDraining(lanes []*lane, why string) {
	running, copies := 0, 0
	for _, l := range lanes {
		l.mu.Lock()
		running += len(l.units)
		copies += l.copies.Outstanding()
		l.mu.Unlock()
	}
	c.log.Info("siding: lanes drain", "why", why, "lanes", len(lanes), "handlers", running, "copies", copies,
		"at_most", c.cfg.DrainTimeout, "partitions", partitionsText(sourcesOf(lanes)))
}

// logRevoked logs that lanes were handed over.
func (c memberLog) logRevoked(lanes []*lane, took time.Duration) {
	cancelled := int64(0)
	for _, l := range lanes {
		cancelled += l.cutOff.Load() + int64(len(l.running()))
	}
	c.recordLog.counts.cancelled.Add(cancelled)
	c.log.Info("siding: lanes revoked", "lanes", len(lanes), "lanes_now", c.laneCount.Load(), "took", took, "cancelled", cancelled,
		"partitions", partitionsText(sourcesOf(lanes)))
}

// logLost logs that lanes were lost, if any.
func (c memberLog) logLost(lanes []*lane) {
	if len(lanes) > 0 {
		c.log.Warn("siding: the membership was lost; records that were not committed run again", "lanes", len(lanes), "partitions", partitionsText(sourcesOf(lanes)))
	}
}

// logEnd logs what no line has yet, and the numbers of the whole run unless it could not start.
func (c memberLog) logEnd(began time.Time, err error) {
	c.recordLog.storms.Close()
	c.clients.warnings.Close()
	var stuck *StuckError
	if err != nil && !errors.As(err, &stuck) {
		return
	}
	about := append([]any{"after", time.Since(began)}, c.recordLog.counts.now().attributes(countsNow{})...)
	about = append(about, "cancelled", c.recordLog.counts.cancelled.Load())
	if stuck != nil {
		about = append(about, "stuck", len(stuck.Records))
	}
	c.log.Info("siding: stopped", about...)
}

// A line names this many topics, and ranges of partitions of each.
const mostNamed = 10

// partitionsText returns partitions as "bills/0 orders/0-5,7".
func partitionsText(all map[string][]int32) string {
	topics := slices.Sorted(maps.Keys(all))
	for i, t := range topics[:min(len(topics), mostNamed)] {
		topics[i] = t + "/" + strings.Join(shorten(ranges(all[t])), ",")
	}
	return strings.Join(shorten(topics), " ")
}

// ranges returns numbers as "0-5" and "7".
func ranges(all []int32) (texts []string) {
	all = slices.Sorted(slices.Values(all))
	for i := 0; i < len(all); {
		from := i
		for i++; i < len(all) && all[i] == all[i-1]+1; i++ {
		}
		if i-from == 1 {
			texts = append(texts, fmt.Sprint(all[from]))
			continue
		}
		texts = append(texts, fmt.Sprintf("%d-%d", all[from], all[i-1]))
	}
	return texts
}

// shorten replaces what is beyond mostNamed by its number.
func shorten(all []string) []string {
	if more := len(all) - mostNamed; more > 0 {
		return append(slices.Clip(all[:mostNamed]), fmt.Sprintf("and %d more", more))
	}
	return all
}
