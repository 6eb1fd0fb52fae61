// Package client creates Kafka clients from options that other clients use at the same time.
//
// One option of kgo is written to by each client that is created from it: kgo.NewClient removes
// duplicates from the codecs of kgo.ProducerBatchCompression in place (franz-go 1.22.3). Two
// clients created at once therefore race, although both write the same. Options cannot be copied,
// since kgo hides their content.
package client

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// making is held while a client is created, which involves no broker.
var making sync.Mutex

// New is kgo.NewClient, one call at a time. It cannot exclude a user's own call of kgo.NewClient
// with the same options.
func New(opts ...kgo.Opt) (*kgo.Client, error) {
	making.Lock()
	defer making.Unlock()
	return kgo.NewClient(opts...)
}

// NewAdmin is kadm.NewOptClient in the same way.
func NewAdmin(opts ...kgo.Opt) (*kadm.Client, error) {
	cl, err := New(opts...)
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(cl), nil
}

// LargeBatches lets a producer send a record of any size: only the size of a request bounds it,
// [kgo.BrokerMaxWriteBytes]. Without it a client refuses a record of 1,000,012 bytes before
// compression, and the broker is never asked. Batches of several records then may be too large for
// their topic.
func LargeBatches() kgo.Opt {
	return kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
		if topic == "" { // kgo compares this one with BrokerMaxWriteBytes
			return 512
		}
		return 1 << 30
	})
}

// MostBytes returns the size from which on a client may refuse a record of a topic by itself.
func MostBytes(cl *kgo.Client, topic string) int {
	most, ok := cl.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)
	if !ok {
		return 1_000_012
	}
	return int(most(topic))
}

// Size returns the most bytes that a record takes in a batch of its own, before compression.
func Size(r *kgo.Record) int {
	n := 128 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 10 + len(h.Key) + len(h.Value)
	}
	return n
}
