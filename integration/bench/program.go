package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/twmb/franz-go/pkg/kfake"
)

// A program does a job's work and measures it.
type program func(context.Context, job) (report, error)

// child is the other end of runChild.
func child(stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dec := json.NewDecoder(stdin)
	var j job
	if err := dec.Decode(&j); err != nil {
		fmt.Fprintln(stderr, "reading the job:", err)
		return exitFailed
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // until the parent closes it or is gone
		cancel()
	}()
	if j.Program == brokerProgram {
		if err := serveBroker(ctx, j.Dir, stdout); err != nil {
			fmt.Fprintln(stderr, err)
			return exitFailed
		}
		return exitOK
	}
	rep, err := runProgram(ctx, j)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	if err := json.NewEncoder(stdout).Encode(rep); err != nil {
		fmt.Fprintln(stderr, "writing the report:", err)
		return exitFailed
	}
	return exitOK
}

func runProgram(ctx context.Context, j job) (rep report, err error) {
	p, ok := programs[j.Program]
	if !ok {
		return report{}, fmt.Errorf("no program named %q", j.Program)
	}
	if j.Profile != "" {
		f, err := os.Create(j.Profile)
		if err != nil {
			return report{}, fmt.Errorf("opening the profile: %w", err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return report{}, errors.Join(fmt.Errorf("starting the profile: %w", err), f.Close())
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, f.Close())
		}()
	}
	heap := make([]byte, j.Heap)
	defer runtime.KeepAlive(heap)
	return p(ctx, j)
}

// programs are what a child process can run.
var programs = map[string]program{
	"bare-consume": bareConsume,
	"bare-pool":    barePool,
	"bare-bridge":  bareBridge,
	"bare-redrive": bareRedrive,
	"bare-read":    bareRead,
	"bare-members": bareMembers,

	"write": writeBlocks,

	"siding-consume":  sidingConsume,
	"siding-keyed":    sidingKeyed,
	"siding-members":  sidingMembers,
	"siding-bridge":   sidingBridge,
	"siding-poison":   sidingPoison,
	"siding-outage":   sidingOutage,
	"siding-draining": sidingDraining,
	"siding-dlq-down": sidingDLQDown,
	"siding-restart":  sidingRestart,
	"siding-parked":   sidingParked,
	"siding-redrive":  sidingRedrive,
	"siding-summary":  sidingSummary,
	"siding-list":     sidingList,
}

// serveBroker writes the broker's address and serves until ctx ends. The log is on disk, but for a
// bench of few records: in memory, gigabytes would burden the garbage collector and slow the broker
// from round to round.
func serveBroker(ctx context.Context, dir string, stdout io.Writer) error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir)) // empty: in memory
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
