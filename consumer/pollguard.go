package consumer

import (
	"context"
	"sync"
)

// pollGuard is the turn of a poll loop. The loop takes the turn before a poll, and returns it when
// all polled records are dispatched. A change of the lanes takes the turn too. So no record that
// was polled before a change is dispatched after it. DESIGN.md, "Intake", says what would be lost.
//
// The turn is not a mutex. A goroutine that has it may wait for time to pass, and virtual time does
// not pass while others wait for a mutex.
type pollGuard struct {
	mu      sync.Mutex
	free    *sync.Cond // signalled when the turn is free
	taken   bool
	waiting int    // waiting changes, which precede the next poll
	cancel  func() // interrupts the last poll
}

func newPollGuard() *pollGuard {
	p := &pollGuard{cancel: func() {}}
	p.free = sync.NewCond(&p.mu)
	return p
}

// begin takes the turn for a poll. The returned context ends when a change waits.
func (p *pollGuard) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.taken || p.waiting > 0 {
		p.free.Wait()
	}
	p.taken = true
	poll, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	return poll, cancel
}

// end returns the turn.
func (p *pollGuard) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = false
	p.free.Broadcast()
}

// betweenPolls runs do in a turn of its own. It interrupts a poll that waits for records.
func (p *pollGuard) betweenPolls(do func()) {
	p.mu.Lock()
	p.waiting++
	for p.taken {
		p.cancel()
		p.free.Wait()
	}
	p.waiting--
	p.taken = true
	p.mu.Unlock()
	defer p.end()
	do()
}
