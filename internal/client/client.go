// Package client makes clients of options of which others are made at the same time.
//
// An option may keep what it was given and let each client have it, and one of kgo's does so that a client writes to:
// kgo.ProducerBatchCompression its codecs, of which kgo.NewClient takes those out that are there twice (franz-go 1.22.2). So two
// that are made at once race, though what they write is the same. Options can't be copied: what they hold is kgo's.
package client

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// making is held while a client is made, which asks no broker.
var making sync.Mutex

// New is kgo.NewClient, one at a time. A user's own call of that, with the same options at the same moment, it can't see.
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
