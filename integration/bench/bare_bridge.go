package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// bareBridge copies a topic to another one, partition by partition, and adds headers with each
// record's origin. It is written for speed, by hand: asynchronous writes with acks from all
// replicas, copies built by the batch, and a batch marked when its last record is acknowledged (the
// promises of a partition come in order).
//
// It is done when all copies are acknowledged and the source's offsets are committed. With Whole a
// second client reads the copies back, from the first one on, and keeps none of them; the bridge
// then also waits for it.
func bareBridge(ctx context.Context, j job) (report, error) {
	cl, err := kgo.NewClient(append(groupOpts(j),
		kgo.AutoCommitInterval(time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
	)...)
	if err != nil {
		return report{}, err
	}
	defer cl.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		m      meter
		total  = j.Data.records()
		acked  atomic.Int64
		done   = make(chan struct{})
		reread = make(chan error, 1)
	)
	go func() { reread <- readBack(ctx, j) }()
	if err := feed(ctx, cl, total, func(records []*kgo.Record) {
		m.begin()
		last := records[len(records)-1]
		slab := copyBatch(records, j)
		end := &slab[len(slab)-1]
		promise := func(r *kgo.Record, err error) {
			switch {
			case err != nil:
				cancel(fmt.Errorf("writing to %s/%d: %w", j.To, r.Partition, err))
			case r == end:
				cl.MarkCommitRecords(last)
				if acked.Add(int64(len(slab))) == total {
					close(done)
				}
			}
		}
		for i := range slab {
			cl.Produce(ctx, &slab[i], promise)
		}
	}); err != nil {
		return report{}, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return report{}, context.Cause(ctx)
	}
	if err := cl.CommitMarkedOffsets(ctx); err != nil {
		return report{}, fmt.Errorf("committing: %w", err)
	}
	if err := <-reread; err != nil {
		return report{}, fmt.Errorf("reading %s back: %w", j.To, err)
	}
	return m.end(total), nil
}

// readBack reads all copies, if the job says so.
func readBack(ctx context.Context, j job) error {
	if !j.Whole {
		return nil
	}
	return readAll(ctx, job{Seeds: j.Seeds, Data: data{Topic: j.To, Ends: j.Data.Ends}}, func(kgo.Fetches) error { return nil })
}

// copyBatch builds the copies of one partition's records with additional headers: one allocation
// each for the records, the headers and the text of the numbers.
func copyBatch(records []*kgo.Record, j job) []kgo.Record {
	const digits = 8 + 13 // of an offset and of a timestamp
	before, after := copyFields(j, time.Now())
	var (
		slab    = make([]kgo.Record, len(records))
		headers = make([]kgo.RecordHeader, 0, len(records)*(j.Headers+len(records[0].Headers)))
		text    = make([]byte, 0, len(records)*(digits+len(before)+len(after)))
		shared  = copyHeaders(records[0], j, time.Now())[:j.Headers-2]
	)
	number := func(before string, v int64, after string) []byte {
		from := len(text)
		text = append(strconv.AppendInt(append(text, before...), v, 10), after...)
		return text[from:len(text):len(text)]
	}
	for i, r := range records {
		from := len(headers)
		headers = append(headers, r.Headers...)
		headers = append(headers,
			kgo.RecordHeader{Key: "dlq-original-offset", Value: number("", r.Offset, "")},
			kgo.RecordHeader{Key: "dlq-meta", Value: number(before, r.Timestamp.UnixMilli(), after)})
		headers = append(headers, shared...)
		slab[i] = kgo.Record{
			Topic:     j.To,
			Partition: r.Partition,
			Key:       r.Key,
			Value:     r.Value,
			Headers:   headers[from:len(headers):len(headers)],
		}
	}
	return slab
}

// The error that records fail with.
const (
	failingClass   = "unavailable"
	failingMessage = "service unavailable"
)

// allHeaders is the number of headers that siding writes on a record's way into its first tier, and
// that the bare bridge adds.
const allHeaders = 10

// copyHeaders are the headers that all records of a batch have in common,
// with the keys and sizes of siding's.
func copyHeaders(r *kgo.Record, j job, now time.Time) []kgo.RecordHeader {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	last := kgo.RecordHeader{Key: "dlq-not-before", Value: []byte(at)}
	if j.Dead {
		last = kgo.RecordHeader{Key: "dlq-reason", Value: []byte("terminal")}
	}
	return []kgo.RecordHeader{
		{Key: "dlq-original-topic", Value: []byte(r.Topic)},
		{Key: "dlq-original-partition", Value: strconv.AppendInt(nil, int64(r.Partition), 10)},
		{Key: "dlq-group", Value: []byte(j.Group)},
		{Key: "dlq-attempts", Value: []byte("1")},
		{Key: "dlq-error-class", Value: []byte(failingClass)},
		{Key: "dlq-error-msg", Value: []byte(failingMessage)},
		{Key: "dlq-failed-at", Value: []byte(at)},
		last,
	}
}

// copyFields are the fields of dlq-meta before and after the record's timestamp.
func copyFields(j job, now time.Time) (before, after string) {
	host, _ := os.Hostname()
	verdict := "retry"
	if j.Dead {
		verdict = "terminal"
	}
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return "ts=",
		";id=C59fTJPxTV6jpqT24ajJ0g;fp=5f0d9c51a3b2e764;host=" + host + ";history=2,1:" + failingClass + ":" + at + ":" + verdict + ":" + failingMessage + ";"
}
