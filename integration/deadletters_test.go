package integration_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// A dead-letter topic on a real broker: its topics have broker timestamps, a compacted ledger, and
// a start that moves.
func TestDeadLettersAreCountedDiscardedArchivedPrunedAndBroughtBack(t *testing.T) {
	t.Parallel()
	kafka := shared.Kafka(t)
	ctx, opts := t.Context(), kafka.Opts()
	cl := client(t, kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	adm := kadm.NewClient(cl)
	source := createTopic(t, kafka, 2)
	siblings, err := retrytopics.Naming{}.Siblings(source, "billing", 5*time.Second)
	must(t, err)
	if _, err := retrytopics.Ensure(ctx, adm, retrytopics.Spec{}, siblings); err != nil {
		t.Fatal(err)
	}
	w := dlq.NewWriter(cl, siblings.DLQ)
	for i := range 40 { // every fourth is a copy of the one two before it
		offset := int64(i / 2)
		if i%8 == 6 {
			offset--
		}
		done := make(chan error, 1)
		w.Write(ctx, &kgo.Record{Partition: int32(i % 2), Value: fmt.Append(nil, i)}, headers.Meta{
			Original: headers.Position{Topic: source, TopicID: [16]byte{1}, Partition: int32(i % 2), Offset: offset}, Group: "billing", Class: "sku",
			Reason: headers.ReasonTerminal, FailedAt: time.Now(), Message: "no such SKU",
		}, func(err error) { done <- err })
		must(t, <-done)
	}
	l := dlq.NewLedger(siblings.DLQ, siblings.Ledger, opts...)
	summarize := func(open, resolved, duplicates int64) {
		t.Helper()
		must(t, l.Read(ctx, nil, nil))
		s, err := l.Summarize(ctx, dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil || s.Open != open || s.Resolved != resolved || s.Duplicates != duplicates {
			t.Fatalf("summary %+v, %v; want %d open, %d resolved, %d duplicates", s, err, open, resolved, duplicates)
		}
	}
	summarize(35, 0, 5)
	if l.Missing() || l.TopicID() == [16]byte{} {
		t.Error("the ledger is missing, or the topic has no id")
	}

	// An engine's transactions: one is committed, the other is not.
	tx := client(t, kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(source))
	for i, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		must(t, tx.BeginTransaction())
		e := dlq.Entry{TopicID: l.TopicID(), State: dlq.Succeeded, Run: "r", At: time.Now()}
		must(t, tx.ProduceSync(ctx, e.Record(siblings.Ledger, 1, int64(i))).FirstErr())
		must(t, tx.EndTransaction(ctx, end))
	}
	summarize(34, 1, 5)
	if letter, notes, err := l.Find(ctx, 1, 1); err != nil || letter.State != dlq.Succeeded || len(notes) != 1 || notes[0].Entry.Run != "r" {
		t.Fatalf("%+v, %v, %v", letter, notes, err)
	}

	n, err := l.Discard(ctx, dlq.Filter{Ranges: []dlq.Range{{Partition: 0}, {Partition: 1, Until: 10}}}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"})
	if err != nil || n != 15+9 {
		t.Fatalf("%d are discarded, %v", n, err)
	}
	summarize(10, 30, 0)

	p, err := l.Prunable(ctx, time.Time{}, nil)
	if err != nil || p.Until[0] != 20 || p.Until[1] != 10 || p.Letters != 30 || p.Open != 0 {
		t.Fatalf("prunable %+v, %v", p, err)
	}
	var archive bytes.Buffer
	if n, err := dlq.Export(&archive, dlq.Read(ctx, siblings.DLQ, dlq.Filter{}, dlq.Cursor{End: p.Until}, opts...)); n != 30 || err != nil {
		t.Fatal(n, err)
	}
	must(t, l.Prune(ctx, p, dlq.PruneOptions{}))
	summarize(10, 0, 0)
	if n, err := dlq.Import(ctx, siblings.DLQ, bytes.NewReader(archive.Bytes()), dlq.ImportOptions{KeepTimestamps: true}, opts...); n != 30 || err != nil {
		t.Fatal(n, err)
	}
	summarize(35, 0, 5)
}
