package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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
	// joinEndsWithin is how long leaving the group waits for a join that is under way.
	joinEndsWithin = time.Second
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
	c.leave() // partitions assigned until then are lost at once
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

// leave leaves the group and closes its client.
//
// kgo leaves only after a join that is under way, and a join waits for the slowest member of the
// group. So leave ends the client before the join does, and takes the member out of the group
// itself. Otherwise the group would assign partitions to a member that is gone, and nobody would
// run their records until its session times out. A static member stays in the group.
func (c *Consumer) leave() {
	if c.classic && c.group.OptValue(kgo.InstanceID) == "" {
		defer time.AfterFunc(joinEndsWithin, c.endGroup).Stop()
	}
	c.group.Close()
	member, _ := c.group.GroupMetadata()
	if c.clients.groupCtx.Err() == nil || !c.classic || member == "" {
		return
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = c.cfg.Group, member // versions 0 to 2
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = member
	req.Members = append(req.Members, m)
	_, _ = req.RequestWith(c.clients.ctx, c.retryCl) // the session's timeout does it otherwise
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
