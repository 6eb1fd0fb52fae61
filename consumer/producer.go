package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/oversize"
)

// producers give each copy the client that it goes by.
//
// kgo keeps a refusal of its producer id for the client's life, and fails all that it is given from then on; a broker refuses one while
// the user may write to no topic at all. Such a client is replaced once a broker gives ids again: lanes get the new one from then on,
// and the old one is closed when the last of its copies has come back.
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

// producer is a client that writes copies.
type producer struct {
	*kgo.Client
	of       *producers
	staleIDs staleTopicIDs
	suspect  atomic.Bool  // a copy was refused by something that may be a refusal of its producer id
	copies   atomic.Int64 // that it was given and that have not come back
	closing  sync.Once
}

const (
	// refreshAhead is how long before its next try a refused copy has its client made ready: told what changed, replaced.
	refreshAhead = 250 * time.Millisecond
	// askTimeout bounds a question for a producer id.
	askTimeout = 10 * time.Second
	// askAtMost bounds the time between two of them.
	askAtMost = 5 * time.Second
)

// client returns the current client, and makes the first.
func (ps *producers) client() (*producer, error) {
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

// take returns the client for a copy, which tells it by back that it has come back.
func (ps *producers) take() (*producer, error) {
	for {
		p, err := ps.client()
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

// back notes that a copy has come back.
func (p *producer) back() {
	if p.copies.Add(-1) == 0 {
		p.closeUnused()
	}
}

// closeUnused closes a client that was replaced and has no copy. It does not wait: kgo calls back while it closes.
func (p *producer) closeUnused() {
	if now := p.of.now.Load(); now != nil && now != p && p.copies.Load() == 0 {
		go p.of.closeOne(p)
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

// suspectOf notes that a copy was refused, if that may be for want of a producer id: kgo passes the broker's refusal of one on. What is said
// of a topic or a record is none: kgo may not have asked for its id yet, and would be waited for.
func (p *producer) suspectOf(err error) {
	ofOne := errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp) ||
		errors.Is(err, kerr.PolicyViolation) || errors.Is(err, kerr.InvalidTopicException) || oversize.Refused(err)
	if !ofOne && refusesForGood(err) {
		p.suspect.Store(true)
	}
}

func refusesForGood(err error) bool {
	var code *kerr.Error
	return errors.As(err, &code) && !code.Retriable
}

// refreshFor makes the client ready for another try of a copy that was refused: it looks at its topics again, forgets one that was recreated,
// and is replaced if it needs to be. It may wait for a broker, so it is not for kgo's callbacks.
func (ps *producers) refreshFor(ctx context.Context, topic string) {
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

// refresh has the client look at its topics now: at how many partitions they have, and whether it may write to them. However many copies
// wait, it looks once for all.
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

// mayAsk reports whether a broker may be asked for a producer id again: one question at a time, and fewer the longer it lasts.
func (ps *producers) mayAsk(p *producer) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	since := time.Since(ps.asked)
	if since > time.Minute {
		ps.asks = 0 // another time that an id is refused: until one is given, there are tries each 15 s
	}
	if ps.asking || ps.now.Load() != p || ps.asks > 0 && since < backoff(ps.asks, refreshAhead, askAtMost) {
		return false
	}
	ps.asking = true
	ps.asks++
	return true
}

// produce hands a copy to the current client; the promise gives that back. There is an error where none can be made.
func (ps *producers) produce(fw *forward, r *kgo.Record, promise func(*kgo.Record, error)) error {
	p, err := ps.take()
	if err != nil {
		return err
	}
	fw.producer, fw.generation = p, p.staleIDs.generation.Load()
	p.TryProduce(fw, r, promise)
	return nil
}
