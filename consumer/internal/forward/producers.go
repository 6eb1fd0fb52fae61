package forward

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
)

// producers give each copy the client that writes it.
//
// kgo keeps a refusal of its producer id for the client's life, and fails everything that it is
// given from then on; a broker refuses an id while the user may write to no topic at all. Such a
// client is replaced once a broker gives ids again: copies get the new one from then on, and the
// old one is closed when the last of its copies has come back.
// See DESIGN.md, "Replacing a producer".
type producers struct {
	open func() (*kgo.Client, error)

	now atomic.Pointer[producer] // nil before the first copy, and at the end

	mu        sync.Mutex // not held over a wait for a broker
	over      bool
	unclosed  map[*producer]struct{}
	refreshed time.Time
	asking    bool
	asked     time.Time // when a broker was last asked for an id
	asks      int       // how often lately
}

const (
	// refreshAhead is how long before the next try of a refused copy its client is made ready: told
	// what changed, or replaced.
	refreshAhead = 250 * time.Millisecond
	// askTimeout bounds a question for a producer id.
	askTimeout = 10 * time.Second
	// askAtMost bounds the time between two of them.
	askAtMost = 5 * time.Second
)

// current returns the current client, and makes the first.
func (ps *producers) current() (*producer, error) {
	if p := ps.now.Load(); p != nil {
		return p, nil
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.now.Load(); p != nil {
		return p, nil
	}
	return ps.next()
}

// next makes another client the current one; the caller holds the lock.
func (ps *producers) next() (*producer, error) {
	if ps.over {
		return nil, kgo.ErrClientClosed
	}
	cl, err := ps.open()
	if err != nil {
		return nil, err
	}
	p := &producer{Client: cl, of: ps, staleIDs: staleTopicIDs{client: cl}}
	if ps.unclosed == nil {
		ps.unclosed = map[*producer]struct{}{}
	}
	ps.unclosed[p] = struct{}{}
	ps.now.Store(p)
	return p, nil
}

// take returns the client for a copy. The copy's promise calls back.
func (ps *producers) take() (*producer, error) {
	for {
		p, err := ps.current()
		if err != nil {
			return nil, err
		}
		p.copies.Add(1)
		if ps.now.Load() == p {
			return p, nil
		}
		p.back() // it was replaced meanwhile, and may be closed
	}
}

func (ps *producers) closeOne(p *producer) {
	p.closing.Do(p.Close)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.unclosed, p)
}

// close closes all clients; no other is made.
func (ps *producers) close() {
	ps.mu.Lock()
	ps.over = true
	ps.now.Store(nil)
	all := slices.Collect(maps.Keys(ps.unclosed))
	ps.mu.Unlock()
	for _, p := range all {
		ps.closeOne(p)
	}
}

// makeReady makes the client ready for another try of a refused copy: it looks its topics up again,
// forgets one that was recreated, and is replaced if it needs to be. It may wait for a broker, so
// it is not for kgo's callbacks.
func (ps *producers) makeReady(ctx context.Context, topic string) {
	p := ps.now.Load()
	if p == nil {
		return // making one is what failed
	}
	ps.refresh(p)
	p.staleIDs.purge(topic)
	if p.suspect.Load() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		ps.replace(ctx, p)
	}
}

// refresh has the client look its topics up now: how many partitions they have, and whether it may
// write to them. However many copies wait, it does so once for all.
func (ps *producers) refresh(p *producer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if now := time.Now(); now.Sub(ps.refreshed) >= refreshAhead/2 {
		ps.refreshed = now
		p.ForceMetadataRefresh()
	}
}

// replace replaces a client whose producer id is refused for good, once a broker gives one.
func (ps *producers) replace(ctx context.Context, p *producer) {
	if _, _, err := p.ProducerID(ctx); !refusesForGood(err) {
		p.suspect.Store(false) // it was the copy, or its topic
		return
	}
	if !ps.mayAsk(p) {
		return
	}
	resp, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(ctx, p.Client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	ps.mu.Lock()
	ps.asking, ps.asked = false, time.Now()
	if err == nil && ps.now.Load() == p {
		_, err = ps.next()
	}
	ps.mu.Unlock()
	if err == nil {
		p.closeUnused()
	}
}

// mayAsk reports whether a broker may be asked for a producer id again: one question at a time, and
// fewer the longer it lasts.
func (ps *producers) mayAsk(p *producer) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	since := time.Since(ps.asked)
	if since > time.Minute {
		ps.asks = 0 // an id is refused another time: until one is given, there is a try each 15 s
	}
	if ps.asking || ps.now.Load() != p || ps.asks > 0 && since < backoff.Of(ps.asks, refreshAhead, askAtMost) {
		return false
	}
	ps.asking = true
	ps.asks++
	return true
}
