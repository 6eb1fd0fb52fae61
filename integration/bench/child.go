package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// childFlag makes the command run one job from its standard input instead.
const childFlag = "-child"

// A job is the input of a program in a child process. A program reads the fields that concern it.
type job struct {
	Program  string
	Seeds    []string
	Group    string
	Data     data
	To       string // topic that a bridge writes to
	Naming   retrytopics.Naming
	Ledger   string
	Resolved int  // letters that the ledger resolves
	Headers  int  // headers that a bridge adds
	Whole    bool // a bridge also reads its copies back
	Dead     bool // a bridge's copies are dead letters
	Slots    int  // handlers at a time
	Members  int  // of the group
	Order    consumer.Order
	Nap      time.Duration // the longest sleep of a handler
	Spin     time.Duration // CPU that the handler burns
	Metrics  bool          // OpenTelemetry's SDK takes the metrics
	Spans    bool          // and has a tracer that samples spans out
	Off      bool          // AttemptTelemetryOff
	Rate     int           // records offered a second, or due
	Offered  int           // records offered
	After    int           // records after which it ends, 0: all
	Kill     bool          // it is killed then
	Poison   int           // one record in so many fails each time; 0: none
	Down     time.Duration // calls fail for so long
	Share    int           // in %, of the records whose calls fail then
	Lasts    time.Duration // time that is measured
	Tiers    []time.Duration
	Lead     time.Duration // from the first parked record's writing to its due time
	Due      []int         // records that the tiers hand to the handler, numbered from tier to tier
	Stay     int64         // records that the tiers keep
	Unseen   bool          // the heap is only measured at the end: the collections take the CPU
	Budget   int64         // MaxParkedBytes; 0: the default
	Heap     int           // bytes that the process holds besides its work
	Profile  string        // file for a CPU profile; empty: none
	Dir      string        // of the embedded broker's log; empty: in memory
}

// runChild runs the job in a process of its own and waits for its report. An empty exe is the
// bench's own binary.
func runChild(ctx context.Context, exe string, j job) (report, error) {
	cmd, err := childCommand(ctx, exe)
	if err != nil {
		return report{}, err
	}
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := startChild(cmd, j); err != nil {
		return report{}, err
	}
	if err := cmd.Wait(); err != nil {
		return report{}, fmt.Errorf("%s: %w\n%s", j.Program, err, bytes.TrimSpace(words.Bytes()))
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		return report{}, fmt.Errorf("reading the report of %s: %w", j.Program, err)
	}
	return rep, nil
}

func childCommand(ctx context.Context, exe string) (_ *exec.Cmd, err error) {
	if exe == "" {
		if exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding the bench's own binary: %w", err)
		}
	}
	return exec.CommandContext(ctx, exe, childFlag), nil
}

// startChild starts the command and writes the job to its standard input, which stays open: its end
// shows the child that the parent is gone.
func startChild(cmd *exec.Cmd, j job) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("opening a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", j.Program, err)
	}
	if err := json.NewEncoder(in).Encode(j); err != nil {
		return errors.Join(fmt.Errorf("handing %s its job: %w", j.Program, err), cmd.Process.Kill(), cmd.Wait())
	}
	return nil
}

// brokerProgram is the job of a child that serves as the embedded broker.
const brokerProgram = "broker"

// startBroker starts the embedded broker in a child process, with its log on disk or in memory. The
// returned function stops it and removes its log.
func startBroker(ctx context.Context, memory bool) (seed string, stop func() error, err error) {
	var dir string
	if !memory {
		if dir, err = os.MkdirTemp("", "siding-bench-"); err != nil {
			return "", nil, err
		}
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
