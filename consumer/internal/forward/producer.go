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
	suspect  atomic.Bool  // a copy was refused, perhaps for want of a producer id
	copies   atomic.Int64 // that it was given and that have not come back
	closing  sync.Once
}

// back notes that a copy has come back.
func (p *producer) back() {
	if p.copies.Add(-1) == 0 {
		p.closeUnused()
	}
}

// closeUnused closes a client that was replaced and has no copy. It does not wait: kgo calls back
// while it closes.
func (p *producer) closeUnused() {
	if now := p.of.now.Load(); now != nil && now != p && p.copies.Load() == 0 {
		go p.of.closeOne(p)
	}
}

// refused notes why a copy was refused that the client was handed in a generation.
//
// kgo passes a broker's refusal of a producer id on. A refusal of a topic or a record is none: kgo
// may not have asked for its id yet, and would be waited for.
func (p *producer) refused(topic string, generation int32, err error) {
	aboutOne := errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp) ||
		errors.Is(err, kerr.PolicyViolation) || errors.Is(err, kerr.InvalidTopicException) || oversize.Refused(err)
	if !aboutOne && refusesForGood(err) {
		p.suspect.Store(true)
	}
	if errors.Is(err, kerr.UnknownTopicID) {
		p.staleIDs.mark(topic, generation)
	}
}

// refusesForGood reports whether a broker answered with an error that kgo does not try again.
func refusesForGood(err error) bool {
	var code *kerr.Error
	return errors.As(err, &code) && !code.Retriable
}

// handover is a copy's latest stay with a client. The zero value has no client.
type handover struct {
	to         *producer
	generation int32 // of the client's topic ids
}

// produce hands a copy to the current client, which calls the promise; that calls back. An error
// means that no client can be made.
func (h *handover) produce(ctx context.Context, ps *producers, r *kgo.Record, promise func(*kgo.Record, error)) error {
	p, err := ps.take()
	if err != nil {
		return err
	}
	*h = handover{p, p.staleIDs.generation.Load()}
	p.TryProduce(ctx, r, promise)
	return nil
}

// back notes that the copy has come back.
func (h handover) back() { h.to.back() }

// refused notes why the copy was refused.
func (h handover) refused(topic string, err error) {
	if h.to != nil {
		h.to.refused(topic, h.generation, err)
	}
}
