package consumertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// errFinal ends the wait of an assertion that cannot come true any more.
var errFinal = errors.New("the record is final")

const (
	// Most assertions come true before the first look, and need none.
	firstLook = 3 * time.Second
	// For so long a record has to be final: a test may be about to redrive it.
	confirmed = 2 * time.Second
)

// untilFinal returns a context for the wait of an assertion, and how long that is. The context also
// ends, with the cause errFinal, when nothing more will become of a record. The caller calls stop
// in the end.
func (k *Kafka) untilFinal(at position) (_ context.Context, patience time.Duration, stop func()) {
	patience = k.patience()
	within, done := context.WithTimeout(context.Background(), patience)
	ctx, cancel := context.WithCancelCause(within)
	var wg sync.WaitGroup
	wg.Go(func() {
		began, pause, before := time.Now(), firstLook, false
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			final, due, err := k.final(ctx, at)
			switch {
			case err != nil || !final:
				final = false
				pause = max(firstLook, min(time.Since(began)/10, longestPause), time.Until(due))
			case before:
				cancel(errFinal)
				return
			default:
				pause = confirmed
			}
			before = final
		}
	})
	return ctx, patience, func() {
		cancel(nil)
		done()
		wg.Wait()
	}
}

// final returns whether a record was handled, discarded or dead-lettered, and no copy of it is in
// flight. Otherwise it may return when the copy in a retry topic is due. When in doubt a record is
// not final: after a redrive of its topic, and when the topic was recreated.
func (k *Kafka) final(ctx context.Context, at position) (final bool, due time.Time, err error) {
	k.mu.Lock()
	s, groups, recreated := k.siblings[at.topic], slices.Clone(k.groups[at.topic]), k.recreated[at.topic]
	k.mu.Unlock()
	if len(groups) == 0 || recreated {
		return false, due, nil
	}
	var committed []kadm.OffsetResponses
	for _, group := range groups {
		offsets, err := k.admin.FetchOffsets(ctx, group)
		if err != nil {
			return false, due, err
		}
		committed = append(committed, offsets)
	}
	finished := func(p position) bool {
		for _, offsets := range committed {
			if o, ok := offsets.Lookup(p.topic, p.partition); !ok || o.At <= p.offset {
				return false
			}
		}
		return true
	}
	if !finished(at) {
		return false, due, nil
	}
	if back, err := findBroughtBack(ctx, k, at.topic, s); err != nil || len(back.letters) > 0 {
		return false, due, err
	}
	inFlight := false
	for _, tier := range s.tiers {
		if err := k.scan(ctx, tier.Topic, func(r *kgo.Record, m headers.Meta) {
			if originalOf(m.Original) == at && !finished(positionOf(r)) {
				inFlight, due = true, m.NotBefore
			}
		}); err != nil || inFlight {
			return false, due, err
		}
	}
	var p places
	k.journal.addTo(&p, at)
	for _, topic := range s.dlqs {
		if err := k.scan(ctx, topic, func(_ *kgo.Record, m headers.Meta) {
			if originalOf(m.Original) == at {
				p.dead++
			}
		}); err != nil {
			return false, due, err
		}
	}
	return p.sum() > 0, due, nil
}

// waited says how long an assertion waited whose context has ended.
func waited(ctx context.Context, patience time.Duration) string {
	if errors.Is(context.Cause(ctx), errFinal) {
		return "before all was done with it"
	}
	return fmt.Sprintf("within %v", patience)
}
