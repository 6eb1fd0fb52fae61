package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

// brokerProgram is the job of a child that serves as the embedded broker.
const brokerProgram = "broker"

// startBroker starts the embedded broker in a child process. The returned
// function stops it and removes its log.
func startBroker(ctx context.Context) (seed string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "siding-bench-")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	remove := func() error {
		cancel()
		return os.RemoveAll(dir)
	}
	cmd, err := childCommand(ctx, "")
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	if err := startChild(cmd, job{Program: brokerProgram, Dir: dir}); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	stop = func() error {
		cancel()
		_ = cmd.Wait() // it reports the kill, which is expected
		return remove()
	}
	seed, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("waiting for its address: %w", err), stop())
	}
	return strings.TrimSpace(seed), stop, nil
}

// serveBroker writes the broker's address and serves until ctx ends. The log is on disk: in memory,
// its gigabytes would burden the garbage collector and slow the broker from round to round.
func serveBroker(ctx context.Context, dir string, stdout io.Writer) error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir))
	if err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	defer cluster.Close()
	if _, err := fmt.Fprintln(stdout, cluster.ListenAddrs()[0]); err != nil {
		return fmt.Errorf("writing the broker's address: %w", err)
	}
	<-ctx.Done()
	return nil
}
