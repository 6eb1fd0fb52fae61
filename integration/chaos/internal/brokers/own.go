package brokers

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// Own is a cluster of somebody's, to which nothing can be done.
type Own struct {
	Kafka
	Opts []kgo.Opt
}

func (o *Own) Can() Capability { return 0 }

func (o *Own) Options(bool) []kgo.Opt { return o.Opts }

func (o *Own) Seeds() []string { return nil }

func (o *Own) Close() error { return nil }
