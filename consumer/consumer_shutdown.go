package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// Brokers that are silent (frozen, or cut off) answer no request, and keep connections open. kgo
// awaits them for 10 s and more, and some of its waits do not see their context end. So a shutdown
// has a time by which it closes the connections itself, which ends every wait.

const (
	// lastCommitWithin is the time that the last commit of a shutdown has after the drain at least.
	lastCommitWithin = 5 * time.Second
	// hangUpWithin is how long after DrainTimeout a shutdown closes the connections. Cancelled
	// handlers, the last commit and 2 s for leaving the group fit in.
	hangUpWithin = stuckAfter + lastCommitWithin + 2*time.Second
	// leavesWithin is how long after its last commit a shutdown closes the connections.
	leavesWithin = 5 * time.Second
)

// shutDown drains all lanes, leaves the group, and waits for what Run began. polling are the poll
// loops, which end with ctx; end ends the consumer's other loops. Beside handlers that ignore their
// cancellation, it takes DrainTimeout and hangUpWithin at most.
func (c *Consumer) shutDown(ctx context.Context, end func(), polling *sync.WaitGroup) error {
	c.hangUpAfter(c.cfg.DrainTimeout + hangUpWithin)
	all := func(*lane) bool { return true }
	drain, cancel := context.WithTimeout(c.ctx, c.cfg.DrainTimeout+stuckAfter+lastCommitWithin)
	c.revoke(drain, "Run ends", all)
	cancel()
	c.hangUpAfter(leavesWithin)
	polling.Wait()
	c.group.Close() // leaves the group; partitions assigned until then are lost at once
	c.lose(all)
	end()
	c.wg.Wait()
	if stuck := c.stuck(); len(stuck) > 0 {
		return &StuckError{Records: stuck}
	}
	c.workers.Wait()
	var refused *refusedError
	if errors.As(context.Cause(ctx), &refused) {
		return fmt.Errorf("consumer: joining group %q: %w", c.cfg.Group, refused.error)
	}
	return nil
}

// hangUpAfter closes the connections to all brokers after a time, unless Run has returned before.
func (c *Consumer) hangUpAfter(wait time.Duration) {
	t := time.AfterFunc(wait, func() {
		if c.clients.ctx.Err() == nil {
			c.log.Warn("siding: brokers did not answer in time; their connections are closed", "waited", wait)
		}
		c.hangUp()
	})
	context.AfterFunc(c.clients.ctx, func() { t.Stop() })
}

// stuck waits up to stuckAfter for the cancelled handlers of closed lanes to return. It lists where
// the records of those handlers were read that do not.
func (c *Consumer) stuck() (records []headers.Position) {
	c.mu.Lock()
	strays := c.abandoned
	c.mu.Unlock()
	deadline := time.Now().Add(stuckAfter)
	for _, l := range strays {
		for _, a := range l.awaitIdle(deadline) {
			records = append(records, a.physical())
		}
	}
	return records
}
