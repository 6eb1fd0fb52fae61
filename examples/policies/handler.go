package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// The values of the records.
const (
	never   = "never works"
	minutes = "down for two minutes"
	later   = "come back in 10 minutes"
	full    = "never works, since the mailbox is full"
	once    = "works the second time"
	store   = "works the fifth time"
	lost    = "lost"
)

func records() []*kgo.Record {
	return []*kgo.Record{
		{Topic: payments, Value: []byte(minutes)},
		{Topic: orders, Value: []byte(never)},
		{Topic: mails, Value: []byte(later)},
		{Topic: mails, Partition: 1, Value: []byte(full)},
		{Topic: analytics, Value: []byte(once)},
		{Topic: audit, Value: []byte(store)},
		{Topic: clicks, Value: []byte(lost)},
	}
}

// handler fails as the record's value demands, and prints each delivery.
type handler struct {
	out    io.Writer
	divide int
	over   func() // called after the last delivery of each record

	mu   sync.Mutex
	last int // records after their last delivery
}

func (h *handler) handle(ctx context.Context, r *kgo.Record) error {
	facts := consumer.DeliveryOf(ctx, r)
	err, last := h.outcome(string(r.Value), facts.Attempt)
	from, what := "source", "handled"
	if facts.Tier > 0 {
		from = retrytopics.FormatDelay(facts.Tier*time.Duration(h.divide)) + " tier"
	}
	if err != nil {
		what = err.Error()
	}
	fmt.Fprintf(h.out, "%s: attempt %d, from the %s: %s\n", r.Topic, facts.Attempt, from, what)
	if last {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.last++; h.last == len(records()) {
			h.over()
		}
	}
	return err
}

// outcome returns the result of a delivery, and whether it is the record's last.
func (h *handler) outcome(value string, attempt int) (err error, last bool) {
	switch {
	case value == never:
		return classify.Retryable(errors.New("the warehouse is down")), attempt == 3
	case value == minutes && attempt < 5:
		return classify.As(classify.Retryable(errors.New("the provider is down")), "payment.down"), false
	case value == later && attempt == 1:
		return classify.RetryAfter(errors.New("too many mails"), 10*time.Minute/time.Duration(h.divide)), false
	case value == full:
		return classify.As(classify.Retryable(errors.New("the mailbox is full")), "mail.full"), attempt == 3
	case value == once && attempt == 1:
		return classify.Retryable(errors.New("the loader is busy")), true
	case value == store && attempt < 5:
		return classify.Retryable(errors.New("the store is down")), false
	case value == lost:
		return errors.New("no such campaign"), true
	}
	return nil, true
}
