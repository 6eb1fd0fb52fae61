package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// data is a topic that has been filled.
type data struct {
	Topic string
	Ends  []int64 // by partition; every partition starts at offset 0
}

func (d data) records() int64 {
	var n int64
	for _, end := range d.Ends {
		n += end
	}
	return n
}

// A shape describes the content of a topic. Record i has 200 bytes of value, i in its first eight,
// and an 8-byte key.
type shape struct {
	partitions int32
	records    int
	keys       int // how many different ones; 0: one a record
	headers    int // a record's user headers
	block      int // records written to one partition before the next one's turn
}

const valueSize = 200

// record returns record i, which is the next one of the partition.
func (d *data) record(partition int32, key, i int, headers []kgo.RecordHeader) *kgo.Record {
	b := make([]byte, 8+valueSize)
	binary.BigEndian.PutUint64(b, uint64(key))
	copy(b[8:], noise)
	binary.BigEndian.PutUint64(b[8:], uint64(i))
	d.Ends[partition]++
	return &kgo.Record{Topic: d.Topic, Partition: partition, Key: b[:8:8], Value: b[8:], Headers: headers}
}

// fill creates a topic and writes the records.
//
// They are written in blocks by partition: a partition's log then consists
// of large batches, as a busy producer's does, however many partitions there
// are.
func (r *rig) fill(ctx context.Context, label string, s shape) (data, error) {
	topic, err := r.topic(ctx, label, s.partitions)
	if err != nil {
		return data{}, err
	}
	d := data{Topic: topic, Ends: make([]int64, s.partitions)}
	headers := userHeaders(s.headers)
	return d, r.write(ctx, func(yield func(*kgo.Record) bool) {
		for i := range s.records {
			key, turn := i, i/s.block
			if s.keys > 0 {
				// The partition follows from the key, so that a key has one.
				key = i % s.keys
				turn = key
			}
			if !yield(d.record(int32(turn%int(s.partitions)), key, i, headers)) {
				return
			}
		}
	})
}

// write writes records to the partitions that they name, uncompressed.
func (r *rig) write(ctx context.Context, records iter.Seq[*kgo.Record], opts ...kgo.Opt) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cl, err := kgo.NewClient(append(opts,
		kgo.SeedBrokers(r.seeds...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(50*time.Millisecond),
		kgo.MaxBufferedRecords(200_000),
	)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	promise := func(rec *kgo.Record, err error) {
		if err != nil {
			cancel(fmt.Errorf("writing to %s/%d: %w", rec.Topic, rec.Partition, err))
		}
	}
	for rec := range records {
		cl.Produce(ctx, rec, promise)
	}
	if err := cl.Flush(ctx); err != nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// noise are a value's bytes: the same in every run, not compressible.
var noise = func() []byte {
	var b [valueSize]byte
	rand.NewChaCha8([32]byte{}).Read(b[:]) // never fails
	return b[:]
}()

func userHeaders(n int) []kgo.RecordHeader {
	all := []kgo.RecordHeader{
		{Key: "content-type", Value: []byte("application/json")},
		{Key: "message-type", Value: []byte("OrderPlaced")},
		{Key: "correlation-id", Value: []byte("0b9f5f4c-93f1-4d5e-a3a6-a4f6e1a8c9d2")},
		{Key: "tenant", Value: []byte("eu-west-1")},
	}
	return all[:n]
}

// index returns the number of the record in the order of writing.
func index(r *kgo.Record) int { return int(binary.BigEndian.Uint64(r.Value)) }
