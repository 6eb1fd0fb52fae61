package main

import (
	"context"
	"slices"
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

// What the benches of letters write. The first letters of a list are resolved: it has to skip them
// all on the way to the first open one. The DLQ of four million is written for its heap alone: it
// takes as long to write as all the rounds with one.
const (
	redriveLetters = 1_000_000
	summaryLetters = 1_000_000
	summaryMany    = 4_000_000
	listLetters    = 1_000_000
	listResolved   = 10_000
)

// Bounds of lines: the heap in MiB that a summary may hold at its end, however many letters there
// are, and the milliseconds to the first row of a list.
const (
	summaryHeap = 64
	listFirst   = 300
)

// metricsSpin is the CPU time of a handler that does a little.
const metricsSpin = 5 * time.Microsecond

// benches are all there are, with the figures they are held to.
var benches = []bench{
	{
		name:   "healthy",
		rounds: shortRounds,
		arms:   consumers(shape{partitions: 8, records: 8_000_000, block: 4096}),
		lines: []line{
			{name: "healthy", unit: "x", goal: atLeast(0.90), of: ratio(report.rate), absolute: rates("siding", "bare")},
			{name: "healthy-cpu", unit: "x", goal: atMost(1.3), of: ratio(report.cpuPerMillion), absolute: cpus("siding", "bare")},
			{name: "healthy-mallocs", unit: "more mallocs a record", goal: atMost(0.01), of: surplus(report.mallocsPerRecord), absolute: each("mallocs", report.mallocsPerRecord, "siding", "bare")},
		},
	},
	{
		name:   "healthy-headers",
		rounds: shortRounds,
		arms:   consumers(shape{partitions: 8, records: 4_000_000, headers: 4, block: 4096}),
		lines:  []line{{name: "healthy-headers", unit: "x", goal: atLeast(0.90), of: ratio(report.rate), absolute: rates("siding", "bare")}},
	},
	{
		name: "healthy-metrics", // the handler does a little; aside: which part of telemetry costs what
		arms: on(shape{partitions: 8, records: 1_500_000, block: 4096},
			arm{name: "metered", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin, Metrics: true, Spans: true}},
			arm{name: "plain", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin}},
			arm{name: "metrics", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin, Metrics: true}, aside: true},
			arm{name: "spans", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin, Spans: true}, aside: true}),
		lines: []line{{name: "healthy-metrics", unit: "x", goal: atLeast(0.93), of: quotient("metered", "plain", report.rate), absolute: rates("metered", "plain")}},
	},
	{
		name: "keyed",
		arms: on(shape{partitions: 8, records: 10_000, keys: 1_000, block: 10_000},
			arm{name: "siding", job: job{Program: "siding-keyed", Slots: 100}},
			arm{name: "bare", job: job{Program: "bare-pool", Slots: 100}}),
		lines: []line{{name: "keyed", unit: "x", goal: atMost(1.15), of: ratio(report.seconds), absolute: each("s", report.seconds, "siding", "bare")}},
	},
	{
		name:   "poison",
		rounds: longRounds,
		arms: []arm{
			{name: "poisoned", job: poisonJob(poisonFor, poisonOne), warm: poisonJob(poisonWarm, poisonOne), run: runPoison},
			{name: "clean", job: poisonJob(poisonFor, 0), warm: poisonJob(poisonWarm, 0), run: runPoison},
		},
		lines: []line{{name: "poison", unit: "x", goal: atMost(1.2), of: quotient("poisoned", "clean", report.p99), absolute: each("ms", report.p99, "poisoned", "clean")}},
	},
	{
		name:   "outage",
		rounds: 1,
		open:   outageArms,
		lines:  outageLines(),
	},
	{
		name: "draining", // the lanes that a member keeps, beside themselves before the rebalance
		arms: on(shape{partitions: 8, records: drainingRecords, block: 100},
			arm{name: "siding", job: job{Program: "siding-draining", Slots: 64}, run: unchecked}),
		lines: []line{{name: "draining", unit: "x", goal: atLeast(0.9), of: sidings(report.kept), absolute: keptRates}},
	},
	{
		name:   "dlq-down",
		rounds: 1,
		kafka:  true,
		arms: []arm{
			{name: "down", job: dlqDownJob(dlqDownLasts, true), warm: dlqDownJob(dlqDownWarm, true), run: runDLQDown},
			{name: "clean", job: dlqDownJob(dlqDownLasts, false), warm: dlqDownJob(dlqDownWarm, false), run: runDLQDown},
		},
		lines: []line{{name: "dlq-down", unit: "x", goal: atLeast(0.95), of: quotient("down", "clean", report.rate), absolute: rates("down", "clean")}},
	},
	{
		name:   "restart",
		rounds: longRounds,
		arms: on(shape{partitions: restartLanes, records: restartRecords, block: restartRecords / restartLanes},
			arm{name: "clean", job: restartJob, run: ended},
			arm{name: "killed", job: restartJob, run: killed(restartAfter)},
			arm{name: "grouped", job: restartJob, run: killed(restartAfter, restartAgain)}),
		lines: []line{
			{name: "restart", unit: "x", goal: atMost(1.3), of: quotient("killed", "clean", report.seconds), absolute: each("s", report.seconds, "killed", "clean")},
			{name: "restart-groups", unit: "x", goal: atMost(2), of: quotient("grouped", "clean", report.seconds), absolute: each("s", report.seconds, "grouped", "clean")},
		},
	},
	{ // not before poison: the broker deletes its data then
		name:   "failing",
		rounds: shortRounds,
		arms:   bridges(false),
		lines:  []line{{name: "failing", unit: "x", goal: atLeast(0.75), of: ratio(report.rate), absolute: rates("siding", "bare")}},
	},
	{
		name: "failing-whole",
		arms: bridges(true),
		lines: []line{
			{name: "failing-whole", unit: "x", goal: atLeast(0.6), of: ratio(report.rate), absolute: rates("siding", "bare")},
			{name: "failing-whole-cpu", unit: "x", goal: atMost(1.8), of: ratio(report.cpuPerMillion), absolute: cpus("siding", "bare")},
		},
	},
	{
		name:   "delays",
		rounds: longRounds,
		arms:   []arm{{name: "siding", job: delaysJob(delaysRecords), warm: delaysJob(delaysWarm), run: runDelays}},
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
		open:   millionArms,
		lines: []line{
			{name: "parked-million", unit: "ms", goal: atMost(100), of: late(0)},
			{name: "parked-million-early", unit: "records", goal: atMost(0), of: sidings(report.early), worst: true},
			{name: "parked-million-heap", unit: "MiB", goal: atMost(parkedHeap), of: sidings(report.heapMiB), worst: true},
		},
	},
	{
		name:    "redrive",
		letters: redriveLetters,
		arms: []arm{
			{name: "siding", job: job{Program: "siding-redrive", Heap: serviceHeap}, run: runRedrive},
			{name: "bare", job: job{Program: "bare-redrive", Heap: serviceHeap}, run: runRedrive},
		},
		lines: []line{{name: "redrive", unit: "x", goal: atLeast(0.7), of: ratio(report.rate), absolute: rates("siding", "bare")}},
	},
	{
		name:    "summary",
		rounds:  shortRounds,
		letters: summaryLetters,
		arms: []arm{
			{name: "siding", job: job{Program: "siding-summary"}, run: unchecked},
			{name: "bare", job: job{Program: "bare-read"}, run: unchecked},
		},
		lines: []line{
			{name: "summary", unit: "x", goal: atMost(1.3), of: ratio(report.seconds), absolute: each("s", report.seconds, "siding", "bare")},
			{name: "summary-heap", unit: "MiB", goal: atMost(summaryHeap), of: sidings(report.heapMiB), worst: true},
		},
	},
	{
		name:    "summary-4m",
		rounds:  1,
		cold:    true, // its time decides nothing
		letters: summaryMany,
		arms:    []arm{{name: "siding", job: job{Program: "siding-summary"}, run: unchecked}},
		lines:   []line{{name: "summary-4m-heap", unit: "MiB", goal: atMost(summaryHeap), of: sidings(report.heapMiB), worst: true}},
	},
	{
		name:    "list",
		rounds:  shortRounds,
		letters: listLetters,
		settled: listResolved,
		arms: []arm{
			{name: "all", job: job{Program: "siding-list"}, run: unchecked},
			{name: "open", job: job{Program: "siding-list", Resolved: listResolved}, run: unchecked},
		},
		lines: []line{
			{name: "list-all", unit: "ms", goal: atMost(listFirst), of: figure("all", report.p50)},
			{name: "list-open", unit: "ms", goal: atMost(listFirst), of: figure("open", report.p50)},
		},
	},
	{
		name: "lanes",
		arms: slices.Concat(lanes("8", 8), lanes("1000", 1000)),
		lines: []line{{name: "lanes", unit: "x", goal: atMost(1.1), of: func(round map[string]report) float64 {
			at := func(lanes string) float64 {
				return round["siding-"+lanes].cpuPerMillion() / round["bare-"+lanes].cpuPerMillion()
			}
			return at("1000") / at("8")
		}, absolute: cpus("siding-1000", "bare-1000", "siding-8", "bare-8")}},
	},
}

// consumers are the loops over a topic.
func consumers(s shape) []arm {
	return on(s,
		arm{name: "siding", job: job{Program: "siding-consume", Heap: serviceHeap}},
		arm{name: "bare", job: job{Program: "bare-consume", Heap: serviceHeap}})
}

// lanes are the loops over a topic of many partitions, or of few.
func lanes(label string, partitions int32) []arm {
	const records = 8_000_000
	both := consumers(shape{partitions: partitions, records: records, block: records / 1000})
	for i := range both {
		both[i].name += "-" + label
	}
	return both
}

// bridges let all records fail. With whole, both programs also read the copies back, and end after
// that.
func bridges(whole bool) []arm {
	return on(shape{partitions: 8, records: 2_000_000, block: 4096},
		arm{name: "siding", job: job{Program: "siding-bridge", Heap: serviceHeap, Whole: whole}, run: runSidingBridge},
		arm{name: "bare", job: job{Program: "bare-bridge", Headers: allHeaders, Heap: serviceHeap, Whole: whole}, run: runBareBridge})
}

// runSidingBridge lets each group have its own tier: otherwise a lane would have to read an earlier
// round's copies.
func runSidingBridge(ctx context.Context, t *turn) (report, error) {
	rep, err := consumeAll(ctx, t)
	if err != nil {
		return report{}, err
	}
	return rep, t.weigh(ctx, ".retry.")
}

func runBareBridge(ctx context.Context, t *turn) (report, error) {
	to, err := t.empty(ctx, "copies")
	if err != nil {
		return report{}, err
	}
	t.job.To = to.Topic
	rep, err := consumeAll(ctx, t)
	if err != nil {
		return report{}, err
	}
	return rep, t.weigh(ctx, "copies")
}
