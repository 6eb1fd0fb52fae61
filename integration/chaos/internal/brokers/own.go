package brokers

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// own is a cluster of somebody's, to which nothing can be done.
type own struct {
	kafka
	opts []kgo.Opt
}

// Own is the cluster that these options name.
func Own(opts []kgo.Opt) Cluster { return &own{opts: opts} }

func (o *own) Can() Capability { return 0 }

func (o *own) Options(bool) []kgo.Opt { return o.opts }

func (o *own) Seeds() []string { return nil }

func (o *own) Close() error { return nil }
