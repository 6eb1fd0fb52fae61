package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// settle waits until the groups have committed all topics to their ends. It returns the partitions
// whose floors stood still instead.
func (e *execution) settle(ctx context.Context) map[trace.TP]string {
	delays := everyTier()
	longest := delays[len(delays)-1] * 11 / 10
	floors, moved := map[trace.TP]int64{}, map[trace.TP]time.Time{}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	deaths := 0
	recovered := e.recovered()
	patience := e.cfg.settles + longest
	if e.faults["stuck"] > 0 { // such a record may begin at any time, and hold up those of its key
		patience += trace.StuckFor
	}
	// A partition that is read from its start again has much to do, and its retries wait for that.
	// After a death its group has to find out, and records that hang may run one by one.
	limit := func(at trace.TP) time.Duration {
		if deaths > 0 || e.load.hasLost(at.Partition) {
			return 4 * patience
		}
		return patience
	}
	for began := time.Now(); ; {
		left, stuck := 0, map[trace.TP]string{}
		if n := len(e.crew.list(&e.crew.died)); n > deaths { // records kill
			deaths = n
			clear(moved)
			clear(floors)
		}
		look := func(at trace.TP, floor int64, why string) {
			left++
			if before, ok := floors[at]; !ok || before != floor {
				floors[at], moved[at] = floor, time.Now()
			}
			if time.Since(later(moved[at], recovered)) > limit(at) {
				stuck[at] = why
			}
		}
		e.behind(ctx, look)
		if len(stuck) > 0 {
			e.describe(ctx)
		}
		if left == 0 || ctx.Err() != nil || len(stuck) > 0 || time.Since(began) > 15*time.Minute {
			return stuck
		}
		<-tick.C
	}
}

// behind calls look with each partition whose floor is not at its end, and why it is so.
func (e *execution) behind(ctx context.Context, look func(at trace.TP, floor int64, why string)) {
	for _, s := range e.plan.services {
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		got, err := e.sampler.take(within, s)
		cancel()
		if err != nil {
			look(trace.TP{Topic: s.Group, Partition: -1}, 0, err.Error())
			continue
		}
		for _, topic := range s.Topics {
			siblings := s.Siblings(topic, e.sampler.tiers)
			for at, end := range got.Ends {
				if at.Topic != siblings.DLQ && at.Topic != siblings.Ledger && end > 0 && got.Committed[at] < end {
					look(at, got.Committed[at], fmt.Sprintf("committed %d of %d", got.Committed[at], end))
				}
			}
		}
	}
}

// recovered is when the topics have to be back at their speed after the last outage.
func (e *execution) recovered() (at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.windows {
		if w.Down {
			at = later(at, time.Unix(0, w.To).Add(e.cfg.recovers))
		}
	}
	return at
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// describe writes what the coordinators know of the groups to a file, for people who look for the
// cause of a find.
func (e *execution) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	text := ""
	for _, s := range e.plan.services {
		if s.NextGen {
			groups, err := e.adm.DescribeConsumerGroups(ctx, s.Group)
			text += fmt.Sprintf("%+v %v\n", groups, err)
			continue
		}
		groups, err := e.adm.DescribeGroups(ctx, s.Group)
		text += fmt.Sprintf("%+v %v\n", groups, err)
	}
	e.try(os.WriteFile(filepath.Join(e.cfg.Dir, "groups"), []byte(text), 0o600))
}
