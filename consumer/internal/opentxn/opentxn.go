// Package opentxn finds partitions that can be read only up to a transaction that stays open. No
// event comes with one: nothing can be read any more.
package opentxn

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

const (
	// every is the interval at which to look, and how long a silent broker is awaited.
	every = 5 * time.Second
	// staysOpen is how long a transaction has to be open. Most are open for a moment.
	staysOpen = 10 * time.Second
)

// Position is where a partition is read. It is safe for concurrent use; its lock is a leaf.
type Position struct {
	mu    sync.Mutex
	next  int64
	looks int       // that found the position there
	since time.Time // when a look first found an open transaction there
	why   string    // which one, once it has stayed open
}

// At registers the next offset at a look, and reports whether to ask the brokers about it: less and
// less often, and at last every five minutes, while it stands at the end of its log.
func (p *Position) At(next int64) (ask bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != next {
		p.next, p.looks, p.since, p.why = next, 0, time.Time{}, ""
	}
	n := p.looks
	p.looks++
	return n > 0 && (n&(n-1) == 0 || n%60 == 0 || !p.since.IsZero())
}

// Awaits returns which open transaction holds up a partition whose next offset is given, and since
// when; why is empty if none does.
func (p *Position) Awaits(next int64) (since time.Time, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != next {
		return time.Time{}, ""
	}
	return p.since, p.why
}

// found registers that a look found an open transaction at an offset, or with a zero time that it
// found none. It reports whether one stays open.
func (p *Position) found(next int64, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != next || now.IsZero() {
		p.since, p.why = time.Time{}, ""
		return false
	}
	if p.since.IsZero() {
		p.since = now
	}
	return now.Sub(p.since) >= staysOpen
}

// explain notes which transaction stays open, and reports whether that is news.
func (p *Position) explain(next int64, why string) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != next {
		return false
	}
	news = p.why == ""
	p.why = why
	return news
}

// Sum is about the partitions of a lane.
type Sum struct {
	N     int64 // how many open transactions hold up
	Since time.Time
	Why   string
}

// Add adds a partition whose next offset is given.
func (s *Sum) Add(p *Position, next int64) {
	since, why := p.Awaits(next)
	if why == "" {
		return
	}
	if s.N++; s.Since.IsZero() || since.Before(s.Since) {
		s.Since = since
	}
	s.Why = strings.TrimPrefix(s.Why+"; "+why, "; ")
}

// Partition is a partition to ask about.
type Partition struct {
	Topic     string
	Partition int32
	Next      int64 // the offset to read next
	*Position
}

// Asker asks the brokers.
type Asker struct {
	Cluster *cluster.Cluster
	Admin   *kadm.Client
	Log     *slog.Logger
}

// Run looks, until ctx ends, at the positions that standing returns.
func (a Asker) Run(ctx context.Context, standing func() []Partition) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if positions := standing(); len(positions) > 0 {
			asking, cancel := context.WithTimeout(ctx, every)
			a.ask(asking, positions)
			cancel()
		}
	}
}

// ask finds out whether records that are not committed lie at the positions, and whose they are.
// Where a broker does not answer, the next look asks again.
func (a Asker) ask(ctx context.Context, positions []Partition) {
	partitions := map[string][]int32{}
	for _, p := range positions {
		partitions[p.Topic] = append(partitions[p.Topic], p.Partition)
	}
	now := time.Now()
	logs, _ := a.Cluster.Stable(ctx, partitions) // Of returns the error
	var stay kadm.TopicsSet
	positions = slices.DeleteFunc(positions, func(p Partition) bool {
		stable, end, err := logs.Of(p.Topic, p.Partition)
		switch {
		case err != nil:
			return true
		case stable != p.Next || stable == end:
			p.found(p.Next, time.Time{})
			return true
		case !p.found(p.Next, now):
			return true
		}
		stay.Add(p.Topic, p.Partition)
		return false
	})
	if len(positions) == 0 {
		return
	}
	producers, _ := a.Admin.DescribeProducers(ctx, stay) // else the producer is unknown
	for _, p := range positions {
		why := describe(p, producers[p.Topic].Partitions[p.Partition].ActiveProducers.Sorted())
		if p.explain(p.Next, why) {
			a.Log.Warn("siding: an open transaction holds up a partition", "topic", p.Topic, "partition", p.Partition, "offset", p.Next, "why", why)
		}
	}
}

// describe says which transaction is open, and how to end it.
func describe(p Partition, producers []kadm.DescribedProducer) string {
	of := "an unknown producer"
	i := slices.IndexFunc(producers, func(d kadm.DescribedProducer) bool { return d.CurrentTxnStartOffset == p.Next })
	if i >= 0 {
		d := producers[i]
		of = fmt.Sprintf("producer id %d, epoch %d, which last wrote at %s", d.ProducerID, d.ProducerEpoch, time.UnixMilli(d.LastTimestamp).UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("open transaction: %s/%d can be read only up to offset %d, where a transaction of %s is open. "+
		"If that producer is gone, end it: kafka-transactions.sh --bootstrap-server … abort --topic %s --partition %d --start-offset %d",
		p.Topic, p.Partition, p.Next, of, p.Topic, p.Partition, p.Next)
}
