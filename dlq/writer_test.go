package dlq

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
)

func TestWriter_KeepsBytesAndPartition(t *testing.T) {
	t.Parallel()
	user := []kgo.RecordHeader{header("b", "2"), header("a", "1"), header("b", "3"), {Key: "nil"}, header("", ""), header("dlq-mine", "x"), header("traceparent", "00-abc")}
	for _, c := range []struct {
		name       string
		key, value []byte
		headers    []kgo.RecordHeader
	}{
		{"text", []byte("k"), []byte("v"), user},
		{"nil key, tombstone", nil, nil, nil},
		{"empty key, empty value", []byte{}, []byte{}, nil},
		{"bytes that are no text", []byte{0xff, 0}, []byte{0, 0xfe}, nil},
		{"a letter again", []byte("k"), []byte("v"), append([]kgo.RecordHeader{header(headers.Attempts, "7"), header(headers.ErrorClass, "old")}, user...)},
	} {
		runOnKafka(t, c.name, func(t *testing.T, k *kafka) {
			wrote := time.Now()
			record := &kgo.Record{
				Topic: "orders", Partition: 2, Offset: 41, Timestamp: wrote.Add(-24 * time.Hour),
				Key: c.key, Value: c.value, Headers: c.headers,
			}
			before := *record
			meta := headers.Meta{
				Original: headers.Position{Topic: "orders", Partition: 2, Offset: 41, Timestamp: record.Timestamp},
				Group:    "billing", Attempts: 4, Class: "net.timeout", Message: "no route", Fingerprint: "0123456789abcdef",
				Reason: headers.ReasonExhausted, FailedAt: wrote, Hops: 4,
			}
			k.write(t, "orders.dlq", record, meta)
			if diff := cmp.Diff(before, *record, cmp.AllowUnexported(kgo.Record{}, kgo.RecordAttrs{})); diff != "" {
				t.Errorf("the caller's record was changed: %s", diff)
			}

			l := k.only(t, "orders.dlq")
			got := l.Record
			if got.Partition != 2 {
				t.Errorf("partition = %d, want 2", got.Partition)
			}
			if diff := cmp.Diff([][]byte{c.key, c.value}, [][]byte{got.Key, got.Value}); diff != "" {
				t.Errorf("key and value: %s", diff)
			}
			if got.Timestamp.Before(wrote.Truncate(time.Millisecond)) {
				t.Errorf("timestamp = %s, want that of writing, %s", got.Timestamp, wrote)
			}
			if diff := cmp.Diff(headers.Strip(c.headers), headers.Strip(got.Headers)); diff != "" {
				t.Errorf("headers: %s", diff)
			}
			if l.MetaErr != nil || l.Meta.Class != "net.timeout" || l.Meta.Attempts != 4 || l.Meta.Original.Offset != 41 || l.Meta.Reason != headers.ReasonExhausted {
				t.Errorf("meta = %+v, %v; want what was given", l.Meta, l.MetaErr)
			}
		})
	}
}

func TestWriter_LetterWithoutAReasonIsTerminal(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.write(t, "one.dlq", &kgo.Record{Value: []byte("from an HTTP ingest")}, headers.Meta{Class: "ingest.signature", NotBefore: time.Now()})
		l := k.only(t, "one.dlq")
		if l.MetaErr != nil || l.Meta.Reason != headers.ReasonTerminal || l.Meta.Class != "ingest.signature" {
			t.Errorf("meta = %+v, %v; want reason terminal", l.Meta, l.MetaErr)
		}
	})
}

func TestWriter_CallsDoneOnceWithTheReason(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		topic string
		r     *kgo.Record
		fault *kfake.Fault
		opts  []kgo.Opt
		close bool
		want  error  // wrapped
		says  string // in the text
	}{
		{name: "acknowledged", topic: "orders.dlq", r: &kgo.Record{}},
		{name: "no such topic", topic: "none.dlq", r: &kgo.Record{Topic: "orders", Partition: 1, Offset: 7}, want: kerr.UnknownTopicOrPartition, says: "write the letter of orders/1/7 to none.dlq/1"},
		{name: "no such partition", topic: "one.dlq", r: &kgo.Record{Partition: 3}, says: "invalid record partitioning choice of 3"},
		{
			name: "not allowed", topic: "one.dlq", r: &kgo.Record{}, want: kerr.TopicAuthorizationFailed,
			fault: &kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "one.dlq", Err: kerr.TopicAuthorizationFailed},
		},
		{
			name: "too large", topic: "one.dlq", r: &kgo.Record{}, want: kerr.MessageTooLarge,
			fault: &kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "one.dlq", Err: kerr.MessageTooLarge, Count: -1},
		},
		{name: "too large for the client", topic: "one.dlq", r: &kgo.Record{Value: make([]byte, 2000)}, opts: []kgo.Opt{kgo.ProducerBatchMaxBytes(1000), kgo.MaxBufferedBytes(1000)}, want: kerr.MessageTooLarge},
		{name: "canceled", topic: "one.dlq", ctx: canceled, r: &kgo.Record{}, want: context.Canceled},
		{name: "closed client", topic: "one.dlq", r: &kgo.Record{}, close: true, want: kgo.ErrClientClosed},
		{name: "no record", topic: "one.dlq", says: "the record is nil"},
		{name: "no topic", r: &kgo.Record{}, opts: []kgo.Opt{kgo.DefaultProduceTopic("one.dlq")}, says: "the topic name is empty"},
		{name: "leader alone", topic: "one.dlq", r: &kgo.Record{}, opts: []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}, says: "could be lost after it was acknowledged"},
	} {
		runOnKafka(t, c.name, func(t *testing.T, k *kafka) {
			cl := k.client(t, c.opts...)
			if c.close {
				cl.Close()
			}
			if c.fault != nil {
				k.Fault(*c.fault)
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			calls := make(chan error, 2)
			NewWriter(cl, c.topic).Write(ctx, c.r, headers.Meta{}, func(err error) { calls <- err })
			err := <-calls
			if c.want == nil && c.says == "" && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want one that is %v", err, c.want)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			time.Sleep(10 * time.Second)
			if len(calls) > 0 {
				t.Errorf("done was called again with %v", <-calls)
			}
		})
	}
}

func TestWriter_FullBufferIsAnErrorAndNeverBlocks(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		cl := k.client(t, kgo.MaxBufferedRecords(1))
		noLeader := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
		w := NewWriter(cl, "one.dlq")
		first, second := make(chan error, 1), make(chan error, 1)
		start := time.Now()
		w.Write(t.Context(), &kgo.Record{}, headers.Meta{}, func(err error) { first <- err })
		w.Write(t.Context(), &kgo.Record{}, headers.Meta{}, func(err error) { second <- err })
		if err := <-second; !errors.Is(err, kgo.ErrMaxBuffered) {
			t.Errorf("the second letter's error = %v, want %v", err, kgo.ErrMaxBuffered)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %s, want no time", took)
		}
		noLeader.Remove()
		if err := <-first; err != nil {
			t.Errorf("the first letter: %v", err)
		}
	})
}

func TestWriter_NilClientIsTheLettersError(t *testing.T) {
	t.Parallel()
	if err := writeSync(t.Context(), NewWriter(nil, "one.dlq"), &kgo.Record{}, headers.Meta{}); err == nil {
		t.Error("a letter was written without a client")
	}
	NewWriter(nil, "one.dlq").Write(t.Context(), &kgo.Record{}, headers.Meta{}, nil)
}
