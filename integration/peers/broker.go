package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// brokerProgram is the job of a child that serves as the embedded broker.
const brokerProgram = "broker"

// broker writes its address and serves until the context ends. Its log is on disk: in memory it
// would burden the garbage collector and slow the broker from round to round.
func broker(ctx context.Context, j work.Job, stdout io.Writer) error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(j.Dir))
	if err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	defer cluster.Close()
	fmt.Fprintln(stdout, cluster.ListenAddrs()[0])
	<-ctx.Done()
	return nil
}

// startBroker starts the embedded broker in a process of its own. The returned function stops it
// and removes its log.
func startBroker(ctx context.Context) (seed string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "siding-peers-")
	if err != nil {
		return "", nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) } // a temporary folder
	p, err := start(context.WithoutCancel(ctx), work.Job{Program: brokerProgram, Dir: dir})
	if err != nil {
		remove()
		return "", nil, err
	}
	if seed, err = p.line(); err != nil {
		remove()
		return "", nil, err
	}
	return seed, func() { p.stop(); remove() }, nil
}
