package forward

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/oversize"
)

// producer is a client that writes copies.
type producer struct {
	*kgo.Client
	of       *producers
	staleIDs staleTopicIDs
	suspect  atomic.Bool  // a copy was refused, perhaps because the client has no producer id
	copies   atomic.Int64 // given to the client, promise not called yet
	closing  sync.Once
}

// back registers that the promise of a copy was called.
func (p *producer) back() {
	if p.copies.Add(-1) == 0 {
		p.closeUnused()
	}
}

// closeUnused closes the client if it was replaced and has no copy. It does not wait, because kgo
// calls promises while it closes.
func (p *producer) closeUnused() {
	if now := p.of.now.Load(); now != nil && now != p && p.copies.Load() == 0 {
		go p.of.closeOne(p)
	}
}

// refused registers why a copy was refused, if it had a client.
//
// kgo fails copies with a broker's refusal of its producer id. Errors about one topic or record are
// not such a refusal. They must not mark the client as suspect: kgo may not have asked for its id
// yet, and replace would wait for that.
func (h handover) refused(topic string, err error) {
	if h.to == nil {
		return
	}
	aboutOne := errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp) ||
		errors.Is(err, kerr.PolicyViolation) || errors.Is(err, kerr.InvalidTopicException) || oversize.Refused(err)
	if !aboutOne && refusesForGood(err) {
		h.to.suspect.Store(true)
	}
	if errors.Is(err, kerr.UnknownTopicID) {
		h.to.staleIDs.mark(topic, h.generation)
	}
}

// refusesForGood reports whether err is a broker's error that kgo does not retry.
func refusesForGood(err error) bool {
	var code *kerr.Error
	return errors.As(err, &code) && !code.Retriable
}

// handover is a copy's latest handover to a client. The zero value has no client.
type handover struct {
	to         *producer
	generation int32 // of the client's topic ids
}

// produce hands a copy to the current client. The promise must call back. An error means that no
// client can be made, and that the promise will not be called.
func (h *handover) produce(ctx context.Context, ps *producers, r *kgo.Record, promise func(*kgo.Record, error)) error {
	p, err := ps.take()
	if err != nil {
		return err
	}
	*h = handover{p, p.staleIDs.generation.Load()}
	p.TryProduce(ctx, r, promise)
	return nil
}

// back registers that the promise of the copy was called.
func (h handover) back() { h.to.back() }
