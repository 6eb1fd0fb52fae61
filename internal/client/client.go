// Package client creates Kafka clients from options that other clients use at the same time.
//
// One option of kgo is written to by each client that is created from it: kgo.NewClient removes
// duplicates from the codecs of kgo.ProducerBatchCompression in place (franz-go 1.22.2). Two
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
