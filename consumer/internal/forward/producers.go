package forward

// Gives each copy its client, and replaces a client that brokers refuse.

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

// producers gives each copy the client that writes it.
//
// A broker refuses a producer id while the user may write to no topic at all. kgo keeps that
// refusal for the client's life, and fails every record from then on. So such a client is replaced
// once a broker gives ids again. Later copies get the new client; the old one is closed after the
// promise of its last copy.
// See DESIGN.md, "Replacing a producer".
type producers struct {
	open func() (*kgo.Client, error)

	now atomic.Pointer[producer] // nil before the first copy, and after close

	mu        sync.Mutex // not held over a wait for a broker
	over      bool
	unclosed  map[*producer]struct{}
	refreshed time.Time
	asking    bool
	asked     time.Time // when a broker was last asked for an id
	asks      int       // how often, since the last quiet minute
}

const (
	// refreshAhead is how long before the next try of a refused copy its client is made ready: its
	// metadata is refreshed, or it is replaced.
	refreshAhead = 250 * time.Millisecond
	// askTimeout bounds a request for a producer id.
	askTimeout = 10 * time.Second
	// askAtMost bounds the time between two such requests.
	askAtMost = 5 * time.Second
)

// current returns the current client. It makes the first one.
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

// next makes a new client, and makes it the current one. The caller holds the lock.
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

// take returns the client for a copy, and counts the copy. The copy's promise must call back.
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

// close closes all clients, and makes no other.
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

// makeReady prepares the client for another try of a refused copy. It refreshes the client's
// metadata, makes it forget the topic if that was recreated, and replaces a suspect client. It may
// wait for a broker, so kgo's callbacks must not call it.
func (ps *producers) makeReady(ctx context.Context, topic string) {
	p := ps.now.Load()
	if p == nil {
		return // no client could be made: the copy's next try makes one
	}
	ps.refresh(p)
	p.staleIDs.purge(topic)
	if p.suspect.Load() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		ps.replace(ctx, p)
	}
}

// refresh makes the client refresh its metadata now: partitions and permissions may have changed.
// Copies that wait at the same time share one refresh.
func (ps *producers) refresh(p *producer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if now := time.Now(); now.Sub(ps.refreshed) >= refreshAhead/2 {
		ps.refreshed = now
		p.ForceMetadataRefresh()
	}
}

// replace replaces a client whose producer id was refused for good, once a broker gives one.
func (ps *producers) replace(ctx context.Context, p *producer) {
	if _, _, err := p.ProducerID(ctx); !refusesForGood(err) {
		p.suspect.Store(false) // the refusal was about the copy or its topic
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

// mayAsk reports whether to ask a broker for a producer id again: one request at a time, and at
// longer and longer intervals.
func (ps *producers) mayAsk(p *producer) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	since := time.Since(ps.asked)
	if since > time.Minute {
		ps.asks = 0 // a new outage: within one, copies are tried every 15 s at least
	}
	if ps.asking || ps.now.Load() != p || ps.asks > 0 && since < backoff.Of(ps.asks, refreshAhead, askAtMost) {
		return false
	}
	ps.asking = true
	ps.asks++
	return true
}
