package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// journal records, by order id, what this program did and saw: the produced orders, the handler's
// calls and the dead letters. It is safe for concurrent use.
type journal struct {
	mu       sync.Mutex
	entries  map[string]*entry
	open     int             // produced, and neither handled nor dead-lettered yet
	recent   []time.Duration // latencies of healthy orders since the last call of lately
	closed   bool            // no more will be produced
	finished chan struct{}   // closed when no order is open any more
}

// entry is the life of one order.
type entry struct {
	healthy  bool
	at       time.Time // handed to the producer
	produced bool      // acknowledged
	runs     int       // calls of the handler
	handled  int       // calls that succeeded
	early    int       // calls before the order was due
	dead     bool      // a dead letter was seen
	latency  time.Duration
}

func newJournal() *journal {
	return &journal{entries: map[string]*entry{}, finished: make(chan struct{})}
}

func (j *journal) of(id string) *entry {
	e := j.entries[id]
	if e == nil {
		e = &entry{}
		j.entries[id] = e
	}
	return e
}

// producing records an order that is about to be produced.
func (j *journal) producing(id string, healthy bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.of(id)
	e.healthy, e.at = healthy, time.Now()
	j.open++
}

// acknowledged records whether the broker acknowledged the order.
func (j *journal) acknowledged(id string, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.of(id)
	e.produced = ok
	if !ok && e.open() {
		j.finishOne()
	}
}

// open reports whether the order is neither handled nor dead-lettered yet.
func (e *entry) open() bool { return e.handled == 0 && !e.dead }

// finishOne removes one order from the open ones. The caller holds the lock.
func (j *journal) finishOne() {
	if j.open--; j.open == 0 && j.closed {
		close(j.finished)
	}
}

// noMore records that all orders are produced.
func (j *journal) noMore() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	if j.open == 0 {
		close(j.finished)
	}
}

// deadLettered records a dead letter.
func (j *journal) deadLettered(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.of(id)
	if e.open() {
		defer j.finishOne()
	}
	e.dead = true
}

// watch records each call of the handler, also one that panics, and reports retries that succeeded.
func (j *journal) watch(h consumer.Handler, retried func(id string, f consumer.Delivery, late time.Duration)) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) (err error) {
		id, delivery, start, returned := idOf(r), consumer.DeliveryOf(ctx, r), time.Now(), false
		defer func() {
			ok := returned && err == nil
			j.ran(id, ok, start.UnixMilli() < delivery.NotBefore.UnixMilli())
			if ok && delivery.Attempt > 1 {
				retried(id, delivery, start.Sub(delivery.NotBefore))
			}
		}()
		err = h(ctx, r)
		returned = true
		return err
	}
}

func (j *journal) ran(id string, ok, early bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.of(id)
	e.runs++
	if early {
		e.early++
	}
	if !ok {
		return
	}
	if e.open() {
		defer j.finishOne()
	}
	if e.handled++; e.handled == 1 {
		e.latency = time.Since(e.at)
		if e.healthy {
			j.recent = append(j.recent, e.latency)
		}
	}
}

// lately returns the latencies of healthy orders since the last call, sorted.
func (j *journal) lately() []time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	recent := j.recent
	j.recent = nil
	slices.Sort(recent)
	return recent
}

// snapshot returns a copy of the entries.
func (j *journal) snapshot() map[string]entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make(map[string]entry, len(j.entries))
	for id, e := range j.entries {
		all[id] = *e
	}
	return all
}

// quantile returns a quantile of sorted durations, by nearest rank.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
