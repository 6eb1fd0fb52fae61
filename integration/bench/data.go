package main

import (
	"encoding/binary"
	"math/rand/v2"

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
	keys       int  // how many different ones; 0: one a record
	zipf       bool // some keys are frequent, most are rare; otherwise they take turns
	headers    int  // a record's user headers
	block      int  // records written to one partition before the next one's turn
}

// zipfOf draws the keys of a shape by the law of Zipf and Mandelbrot, the same ones in each run.
//
// Its head is flat: the most frequent key has about one record in 17,000. Those of a key run one
// after another, so that with a steeper head this key alone would decide how long all takes, and
// few others would be left to run beside it.
func zipfOf(s shape) *rand.Zipf {
	if !s.zipf {
		return nil
	}
	return rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 4000, uint64(s.keys-1))
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
