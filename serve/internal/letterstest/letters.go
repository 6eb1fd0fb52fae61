// Package letterstest has what tests of the server do to dead letters and ledgers.
package letterstest

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve/archive"
)

// Broker is a broker with dead-letter topics.
type Broker struct {
	T      *testing.T
	Opts   []kgo.Opt
	Client *kgo.Client // writes to the partitions of its records
}

// On returns the broker at some addresses, for a test.
func On(t *testing.T, addresses []string) Broker {
	t.Helper()
	b := Broker{T: t, Opts: []kgo.Opt{kgo.SeedBrokers(addresses...)}}
	var err error
	if b.Client, err = client.New(append(b.Opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Client.Close)
	return b
}

// TopicsOf returns sources with their dead-letter topics and ledgers.
func TopicsOf(sources []string) (all []string) {
	for _, s := range sources {
		all = append(all, s, s+".dlq", s+".dlq.ledger")
	}
	return all
}

// Held returns how many letters are in a dead-letter topic.
func (b Broker) Held(topic string) (n int) {
	b.T.Helper()
	for _, err := range dlq.Read(b.T.Context(), topic, dlq.Filter{}, dlq.Cursor{}, b.Opts...) {
		if err != nil {
			b.T.Fatal(err)
		}
		n++
	}
	return n
}

// Discard discards all letters of a topic.
func (b Broker) Discard(topic string) {
	b.T.Helper()
	l := dlq.NewLedger(topic, topic+".ledger", b.Opts...)
	if _, err := l.Discard(b.T.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
		b.T.Fatal(err)
	}
}

// WriteOld writes letters to the first partition that are as old as that.
func (b Broker) WriteOld(topic string, ages ...time.Duration) {
	b.T.Helper()
	for _, age := range ages {
		r := &kgo.Record{Topic: topic, Timestamp: time.Now().Add(-age), Headers: []kgo.RecordHeader{{Key: headers.FailureReason, Value: []byte(headers.ReasonTerminal)}}}
		if err := b.Client.ProduceSync(b.T.Context(), r).FirstErr(); err != nil {
			b.T.Fatal(err)
		}
	}
}

// Prunes returns the records of deleted letters in a topic's ledger.
func (b Broker) Prunes(topic string) []ledgerrecord.Prune {
	b.T.Helper()
	all := ledgerrecord.Prunes{}
	err := dlq.NewLedger(topic, topic+".ledger", b.Opts...).Read(b.T.Context(), nil, func(n *dlq.LedgerRecord) {
		if _, err := all.Add(n.Run, n.Record.Value); err != nil {
			b.T.Error(err)
		}
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return all.Sorted()
}

// Import imports an archive, and returns the number of its letters.
func (b Broker) Import(topic, location string, s archive.S3) int64 {
	b.T.Helper()
	r, err := archive.Open(b.T.Context(), location, s)
	if err != nil {
		b.T.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	n, err := dlq.Import(b.T.Context(), topic, r, dlq.ImportOptions{}, b.Opts...)
	if err != nil {
		b.T.Fatal(err)
	}
	return n
}
