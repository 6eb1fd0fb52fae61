package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// serviceHeap is the heap that the processes of the throughput benches hold besides their work,
// like the service around a consumer. With an empty heap the collector would run at each fetch and
// return its memory to the system. That costs the bare loop a quarter of its speed and hides the
// difference.
const serviceHeap = 64 << 20

// parkedHeap is the heap in MiB that a process with parked records may use after a collection: the
// default of MaxParkedBytes, and 32 for all else.
const parkedHeap = 64 + 32

// benches are all there are, with the figures they are held to.
var benches = []bench{
	{
		name:   "healthy",
		rounds: shortRounds,
		open:   consumeBench(shape{partitions: 8, records: 8_000_000, block: 4096}),
		lines: []line{
			{name: "healthy", unit: "x", goal: atLeast(0.90), of: ratio(report.rate), absolute: rates("siding", "bare")},
			{name: "healthy-cpu", unit: "x", goal: atMost(1.3), of: ratio(report.cpuPerMillion), absolute: cpus("siding", "bare")},
			{name: "healthy-mallocs", unit: "more mallocs a record", goal: atMost(0.01), of: surplus(report.mallocsPerRecord), absolute: each("mallocs", report.mallocsPerRecord, "siding", "bare")},
		},
	},
	{
		name:   "healthy-headers",
		rounds: shortRounds,
		open:   consumeBench(shape{partitions: 8, records: 4_000_000, headers: 4, block: 4096}),
		lines:  []line{{name: "healthy-headers", unit: "x", goal: atLeast(0.90), of: ratio(report.rate), absolute: rates("siding", "bare")}},
	},
	{
		name:  "healthy-metrics",
		open:  metricsBench,
		aside: []string{"metrics", "spans"},
		lines: []line{{name: "healthy-metrics", unit: "x", goal: atLeast(0.93), of: quotient("metered", "plain", report.rate), absolute: rates("metered", "plain")}},
	},
	{
		name:  "keyed",
		open:  keyedBench,
		lines: []line{{name: "keyed", unit: "x", goal: atMost(1.15), of: ratio(report.seconds), absolute: each("s", report.seconds, "siding", "bare")}},
	},
	{
		name:   "poison",
		rounds: longRounds,
		open:   poisonBench,
		lines:  []line{{name: "poison", unit: "x", goal: atMost(1.2), of: quotient("poisoned", "clean", report.p99), absolute: each("ms", report.p99, "poisoned", "clean")}},
	},
	{
		name:   "outage",
		rounds: 1,
		open:   outageBench,
		lines:  outageLines(),
	},
	{
		name:  "draining",
		open:  drainingBench,
		lines: []line{{name: "draining", unit: "x", goal: atLeast(0.9), of: sidings(report.kept), absolute: keptRates}},
	},
	{
		name:   "dlq-down",
		rounds: 1,
		kafka:  true,
		open:   dlqDownBench,
		lines:  []line{{name: "dlq-down", unit: "x", goal: atLeast(0.95), of: quotient("down", "clean", report.rate), absolute: rates("down", "clean")}},
	},
	{
		name:   "restart",
		rounds: longRounds,
		open:   restartBench,
		lines: []line{
			{name: "restart", unit: "x", goal: atMost(1.3), of: quotient("killed", "clean", report.seconds), absolute: each("s", report.seconds, "killed", "clean")},
			{name: "restart-groups", unit: "x", goal: atMost(2), of: quotient("grouped", "clean", report.seconds), absolute: each("s", report.seconds, "grouped", "clean")},
		},
	},
	{ // not before poison: the broker deletes its data then
		name:   "failing",
		rounds: shortRounds,
		open:   failingBench(false),
		lines:  []line{{name: "failing", unit: "x", goal: atLeast(0.75), of: ratio(report.rate), absolute: rates("siding", "bare")}},
	},
	{
		name: "failing-whole",
		open: failingBench(true),
		lines: []line{
			{name: "failing-whole", unit: "x", goal: atLeast(0.6), of: ratio(report.rate), absolute: rates("siding", "bare")},
			{name: "failing-whole-cpu", unit: "x", goal: atMost(1.8), of: ratio(report.cpuPerMillion), absolute: cpus("siding", "bare")},
		},
	},
	{
		name:   "delays",
		rounds: longRounds,
		open:   delaysBench,
		lines: []line{
			{name: "delays-early", unit: "records", goal: atMost(0), of: sidings(report.early), worst: true},
			{name: "delays-p99-90s", unit: "ms", goal: atMost(100), of: late(0)},
			{name: "delays-p99-2m", unit: "ms", goal: atMost(100), of: late(1)},
			{name: "delays-heap", unit: "MiB", goal: atMost(parkedHeap), of: sidings(report.heapMiB), worst: true},
			{name: "delays-refetched", unit: "x", goal: atMost(1.1), of: sidings(report.refetched)},
		},
	},
	{
		name:   "parked-million",
		rounds: longRounds,
		open:   millionBench,
		lines: []line{
			{name: "parked-million", unit: "ms", goal: atMost(100), of: late(0)},
			{name: "parked-million-early", unit: "records", goal: atMost(0), of: sidings(report.early), worst: true},
			{name: "parked-million-heap", unit: "MiB", goal: atMost(parkedHeap), of: sidings(report.heapMiB), worst: true},
		},
	},
	{
		name:  "redrive",
		open:  redriveBench,
		lines: []line{{name: "redrive", unit: "x", goal: atLeast(0.7), of: ratio(report.rate), absolute: rates("siding", "bare")}},
	},
	{
		name:   "summary",
		rounds: shortRounds,
		open:   summaryBench,
		lines: []line{
			{name: "summary", unit: "x", goal: atMost(1.3), of: ratio(report.seconds), absolute: each("s", report.seconds, "siding", "bare")},
			{name: "summary-heap", unit: "MiB", goal: atMost(summaryHeap), of: sidings(report.heapMiB), worst: true},
		},
	},
	{
		name:   "summary-4m",
		rounds: 1,
		open:   summaryManyBench,
		lines:  []line{{name: "summary-4m-heap", unit: "MiB", goal: atMost(summaryHeap), of: sidings(report.heapMiB), worst: true}},
	},
	{
		name:   "list",
		rounds: shortRounds,
		open:   listBench,
		lines: []line{
			{name: "list-all", unit: "ms", goal: atMost(listFirst), of: figure("all", report.p50)},
			{name: "list-open", unit: "ms", goal: atMost(listFirst), of: figure("open", report.p50)},
		},
	},
	{
		name: "lanes",
		open: lanesBench,
		lines: []line{{name: "lanes", unit: "x", goal: atMost(1.1), of: func(round map[string]report) float64 {
			at := func(lanes string) float64 {
				return round["siding-"+lanes].cpuPerMillion() / round["bare-"+lanes].cpuPerMillion()
			}
			return at("1000") / at("8")
		}, absolute: cpus("siding-1000", "bare-1000", "siding-8", "bare-8")}},
	},
}

// ratio compares the siding program's figure with the bare one's.
func ratio(of func(report) float64) func(map[string]report) float64 {
	return quotient("siding", "bare", of)
}

// quotient compares the figures of two programs.
func quotient(program, base string, of func(report) float64) func(map[string]report) float64 {
	return func(round map[string]report) float64 { return of(round[program]) / of(round[base]) }
}

// surplus is what the siding program's figure has over the bare one's.
func surplus(of func(report) float64) func(map[string]report) float64 {
	return func(round map[string]report) float64 { return of(round["siding"]) - of(round["bare"]) }
}

// sidings is a figure of the siding program by itself.
func sidings(of func(report) float64) func(map[string]report) float64 { return figure("siding", of) }

// each is the same figure of several programs.
func each(unit string, of func(report) float64, programs ...string) func(map[string]report) []absolute {
	return func(round map[string]report) (all []absolute) {
		for _, p := range programs {
			all = append(all, absolute{Program: p, Figure: of(round[p]), Unit: unit})
		}
		return all
	}
}

func rates(programs ...string) func(map[string]report) []absolute {
	return each("records/s", report.rate, programs...)
}

func cpus(programs ...string) func(map[string]report) []absolute {
	return each("µs CPU/record", report.cpuPerMillion, programs...)
}

// figure is a figure of one program by itself.
func figure(program string, of func(report) float64) func(map[string]report) float64 {
	return func(round map[string]report) float64 { return of(round[program]) }
}

// late is the 99th percentile of a tier's lateness.
func late(tier int) func(map[string]report) float64 {
	return sidings(func(r report) float64 { return r.Late[tier].P99 })
}

// consumeBench compares a loop over a topic that is written once; each round
// reads it with groups of its own.
func consumeBench(s shape) func(context.Context, *rig) ([]arm, error) {
	return func(ctx context.Context, r *rig) ([]arm, error) {
		d, err := r.fill(ctx, "src", s)
		if err != nil {
			return nil, err
		}
		return []arm{
			r.consumer("siding", "siding-consume", d, job{Heap: serviceHeap}),
			r.consumer("bare", "bare-consume", d, job{Heap: serviceHeap}),
		}, nil
	}
}

// consumer is an arm that reads the data with a group of its own and commits
// all of it.
func (r *rig) consumer(name, program string, d data, j job) arm {
	return arm{name, func(ctx context.Context, round int) (report, error) {
		j.Program, j.Data, j.Group = program, d, r.group(name, round)
		rep, err := r.run(ctx, name, j)
		if err != nil {
			return report{}, err
		}
		return rep, r.consumed(ctx, j.Group, d)
	}}
}

// metricsBench compares siding with and without telemetry, with a handler that does a little.
// Metrics and spans alone show which part costs what.
func metricsBench(ctx context.Context, r *rig) ([]arm, error) {
	d, err := r.fill(ctx, "src", shape{partitions: 8, records: 1_500_000, block: 4096})
	if err != nil {
		return nil, err
	}
	j := job{Heap: serviceHeap, Spin: 5 * time.Microsecond}
	with := func(name string, metrics, spans bool) arm {
		j.Metrics, j.Spans = metrics, spans
		return r.consumer(name, "siding-consume", d, j)
	}
	return []arm{with("metered", true, true), with("plain", false, false), with("metrics", true, false), with("spans", false, true)}, nil
}

func keyedBench(ctx context.Context, r *rig) ([]arm, error) {
	d, err := r.fill(ctx, "src", shape{partitions: 8, records: 10_000, keys: 1_000, block: 10_000})
	if err != nil {
		return nil, err
	}
	return []arm{
		r.consumer("siding", "siding-keyed", d, job{Slots: 100}),
		r.consumer("bare", "bare-pool", d, job{Slots: 100}),
	}, nil
}

// failingBench writes the source once, and gives each round's group its own topics for the copies:
// otherwise a lane would have to read an earlier round's copies. With whole, both programs also
// read the copies back, and end after that.
func failingBench(whole bool) func(context.Context, *rig) ([]arm, error) {
	return func(ctx context.Context, r *rig) ([]arm, error) {
		const partitions = 8
		d, err := r.fill(ctx, "src", shape{partitions: partitions, records: 2_000_000, block: 4096})
		if err != nil {
			return nil, err
		}
		siding := r.consumer("siding", "siding-bridge", d, job{Heap: serviceHeap, Whole: whole})
		bare := arm{"bare", func(ctx context.Context, round int) (report, error) {
			to, err := r.topic(ctx, fmt.Sprintf("copies-%d", round), partitions)
			if err != nil {
				return report{}, err
			}
			j := job{To: to, Headers: allHeaders, Heap: serviceHeap, Whole: whole}
			return r.consumer("bare", "bare-bridge", d, j).run(ctx, round)
		}}
		var size copySizes
		return []arm{
			r.weighed(siding, ".retry.", &size.siding, &size),
			r.weighed(bare, "copies", &size.bare, &size),
		}, nil
	}
}

// copySizes are the bytes that the broker keeps of a round's copies.
type copySizes struct{ siding, bare int64 }

// check fails unless the bare bridge writes as much as siding.
func (s copySizes) check() error {
	if s.siding == 0 || s.bare == 0 { // only one of them is run
		return nil
	}
	if d := math.Abs(float64(s.bare)/float64(s.siding) - 1); d > 0.05 {
		return fmt.Errorf("siding's copies take %d bytes and the bare bridge's %d: their headers are not the same", s.siding, s.bare)
	}
	return nil
}

// weighed is the arm with the size of its copies. It measures and checks the topics whose names
// contain the label, and deletes them, so that the broker need not write gigabytes to its disk.
func (r *rig) weighed(a arm, label string, size *int64, sizes *copySizes) arm {
	run := a.run
	a.run = func(ctx context.Context, round int) (report, error) {
		rep, err := run(ctx, round)
		if err != nil {
			return report{}, err
		}
		if *size, err = r.size(ctx, label); err != nil {
			return report{}, err
		}
		return rep, errors.Join(sizes.check(), r.deleteTopics(ctx, label))
	}
	return a
}

func lanesBench(ctx context.Context, r *rig) ([]arm, error) {
	const records = 8_000_000
	var arms []arm
	for _, lanes := range []struct {
		label      string
		partitions int32
	}{{"8", 8}, {"1000", 1000}} {
		d, err := r.fill(ctx, "src-"+lanes.label, shape{partitions: lanes.partitions, records: records, block: records / 1000})
		if err != nil {
			return nil, err
		}
		arms = append(arms,
			r.consumer("siding-"+lanes.label, "siding-consume", d, job{Heap: serviceHeap}),
			r.consumer("bare-"+lanes.label, "bare-consume", d, job{Heap: serviceHeap}))
	}
	return arms, nil
}

// programs are what a child process can run.
var programs = map[string]program{
	"bare-consume": bareConsume,
	"bare-pool":    barePool,
	"bare-bridge":  bareBridge,
	"bare-redrive": bareRedrive,
	"bare-read":    bareRead,

	"siding-consume":  sidingConsume,
	"siding-keyed":    sidingKeyed,
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
