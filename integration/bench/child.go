package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

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
	Resolved int           // letters that the ledger resolves
	Headers  int           // headers that a bridge adds
	Whole    bool          // a bridge also reads its copies back
	Slots    int           // handlers at a time
	Spin     time.Duration // CPU that the handler burns
	Metrics  bool          // OpenTelemetry's SDK takes the metrics
	Spans    bool          // and has a tracer that samples spans out
	Rate     int           // records offered a second
	Offered  int           // records offered
	After    int           // records after which it ends, 0: all
	Kill     bool          // it is killed then
	Poison   int           // one record in so many fails each time; 0: none
	Down     time.Duration // calls fail for so long
	Share    int           // in %, of the records whose calls fail then
	Lasts    time.Duration // time that is measured
	Tiers    []time.Duration
	Due      []int  // records that the tiers hand to the handler, numbered from tier to tier
	Heap     int    // bytes that the process holds besides its work
	Profile  string // file for a CPU profile; empty: none
	Dir      string // of the embedded broker's log
}

// A report is what a program measured. Times are seconds, latencies
// milliseconds.
type report struct {
	Records   int64
	Seconds   float64
	CPU       float64 // of this process, user and system
	Mallocs   uint64
	Bytes     uint64
	HeapInuse uint64
	P50, P99  float64

	// Of the benches of parked records: HeapInuse is then the most that was
	// in use just after a collection.
	Late      []spread // by tier: start of the handler after the due time
	Parked    int64    // most records that waited, by siding's metrics
	Released  int64    // bytes that siding evicted, and
	Refetched int64    // bytes that it fetched again, as it counts them
	Held      int64    // bytes of all that was parked, as it would count them
	Fetched   int64    // bytes of all answers to fetches, and
	Filled    int64    // those that the filled topics have on the broker

	Outage outageCounts
	Before float64 // rate of the same lanes before a rebalance
}

func (r report) rate() float64             { return float64(r.Records) / r.Seconds }
func (r report) cpuPerMillion() float64    { return r.CPU / float64(r.Records) * 1e6 }
func (r report) mallocsPerRecord() float64 { return float64(r.Mallocs) / float64(r.Records) }
func (r report) bytesPerRecord() float64   { return float64(r.Bytes) / float64(r.Records) }

// p50 is the median latency in milliseconds.
func (r report) p50() float64     { return r.P50 }
func (r report) p99() float64     { return r.P99 }
func (r report) seconds() float64 { return r.Seconds }

// early counts the records that ran before their time.
func (r report) early() float64 {
	n := 0
	for _, l := range r.Late {
		n += l.Early
	}
	return float64(n)
}

// heapMiB is HeapInuse in MiB.
func (r report) heapMiB() float64 { return float64(r.HeapInuse) / (1 << 20) }

// refetched is the number of bytes read again for each byte that siding evicted. It uses siding's
// own count, or the bytes on the wire beyond the topics' own, whichever is worse. Siding's count
// includes neighbours in a record's batch. The wire also has batches that were cut off at the end
// of an answer, and fetches that were discarded. Bytes on the wire are encoded, and counted as
// siding would count them.
func (r report) refetched() float64 {
	wire := float64(r.Fetched-r.Filled) / float64(r.Filled) * float64(r.Held)
	again := max(float64(r.Refetched), wire, 0)
	return again / float64(max(r.Released, 1))
}

// A program does a job's work and measures it.
type program func(context.Context, job) (report, error)

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
