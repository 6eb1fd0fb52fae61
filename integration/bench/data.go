package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
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
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(r.seeds...),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(50*time.Millisecond),
		kgo.MaxBufferedRecords(200_000),
	)
	if err != nil {
		return data{}, err
	}
	defer cl.Close()

	d := data{Topic: topic, Ends: make([]int64, s.partitions)}
	var (
		failed  error
		once    sync.Once
		promise = func(rec *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = fmt.Errorf("writing to %s/%d: %w", topic, rec.Partition, err) })
			}
		}
		noise   = noise()
		headers = userHeaders(s.headers)
	)
	for i := 0; i < s.records; {
		n := min(s.block, s.records-i)
		partition := int32(i / s.block % int(s.partitions))
		records := make([]kgo.Record, n)
		bytes := make([]byte, n*(8+valueSize))
		for j := range records {
			b := bytes[j*(8+valueSize):][:8+valueSize]
			key := i + j
			if s.keys > 0 {
				// The partition follows from the key, so that a key has one.
				key = key % s.keys
				partition = int32(key % int(s.partitions))
			}
			binary.BigEndian.PutUint64(b, uint64(key))
			copy(b[8:], noise)
			binary.BigEndian.PutUint64(b[8:], uint64(i+j))
			records[j] = kgo.Record{Key: b[:8:8], Value: b[8:], Headers: headers, Partition: partition}
			d.Ends[partition]++
			cl.Produce(ctx, &records[j], promise)
		}
		i += n
	}
	if err := cl.Flush(ctx); err != nil {
		return data{}, fmt.Errorf("writing to %s: %w", topic, err)
	}
	return d, failed
}

// noise returns a value's bytes: the same in every run, not compressible.
func noise() []byte {
	var b [valueSize]byte
	rand.NewChaCha8([32]byte{}).Read(b[:]) // never fails
	return b[:]
}

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
