package main

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer"
)

// serviceHeap is the heap that the processes of the throughput benches hold besides their work,
// like the service around a consumer. With an empty heap the collector would run at each fetch and
// return its memory to the system. That costs the bare loop a quarter of its speed and hides the
// difference.
const serviceHeap = 64 << 20

// parkedHeap is the heap in MiB that a process with parked records may use after a collection: the
// default of MaxParkedBytes, and 32 for all else.
const parkedHeap = 64 + 32

// manyHeap is the same with ten million of them.
const manyHeap = 128

// listResolved are the first letters of a list: it skips them on the way to the first open one.
const listResolved = 10_000

// summaryHeap is the heap in MiB that a summary may hold at its end, of however many letters.
const summaryHeap = 64

// keyedNap is the longest sleep of a handler among a hundred, keysNap among ten thousand, whose
// number of records would otherwise be too much for two CPUs.
const (
	keyedNap  = 5 * time.Millisecond
	keysNap   = 100 * time.Millisecond
	keysSlots = 10_000
)

// metricsSpin is the CPU time of a handler that does a little.
const metricsSpin = 5 * time.Microsecond

// benches are all there are, with the figures they are held to.
var benches = []bench{
	{
		name:   "healthy",
		rounds: shortRounds,
		arms:   consumers(shape{partitions: 8, records: 8_000_000, block: 4096}, serviceHeap),
		lines: []line{
			speed.versus("healthy", atLeast(0.95), "siding", "bare"),
			cpuTime.versus("healthy-cpu", atMost(1.15), "siding", "bare"),
			mallocs.surplus("healthy-mallocs", "more mallocs a record", atMost(0.01), "siding", "bare"),
		},
	},
	{
		name:   "healthy-default", // nothing else is in the heap, so Go collects often
		rounds: shortRounds,
		arms:   consumers(shape{partitions: 8, records: 8_000_000, block: 4096}, 0),
		lines: []line{
			speed.versus("healthy-default", atLeast(0.95), "siding", "bare"),
			cpuTime.versus("healthy-default-cpu", atMost(1.15), "siding", "bare"),
		},
	},
	{
		name:   "healthy-headers",
		rounds: shortRounds,
		arms:   consumers(shape{partitions: 8, records: 4_000_000, headers: 4, block: 4096}, serviceHeap),
		lines:  []line{speed.versus("healthy-headers", atLeast(0.90), "siding", "bare")},
	},
	{
		name:   "healthy-keys",
		rounds: shortRounds,
		arms: on(shape{partitions: 8, records: 8_000_000, block: 4096},
			arm{name: "siding", job: job{Program: "siding-consume", Heap: serviceHeap, Order: consumer.OrderKey}},
			arm{name: "unordered", job: job{Program: "siding-consume", Heap: serviceHeap, Order: consumer.OrderNone}}),
		lines: []line{cpuTime.versus("healthy-keys-cpu", atMost(1.2), "siding", "unordered")},
	},
	{
		name: "healthy-metrics", // aside: which part of telemetry costs what
		arms: on(shape{partitions: 8, records: 1_500_000, block: 4096},
			arm{name: "metered", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin, Metrics: true, Spans: true}},
			arm{name: "plain", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin}},
			arm{name: "off", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin, Metrics: true, Spans: true, Off: true}},
			arm{name: "metrics", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin, Metrics: true}, aside: true},
			arm{name: "spans", job: job{Program: "siding-consume", Heap: serviceHeap, Spin: metricsSpin, Spans: true}, aside: true}),
		lines: []line{
			speed.versus("healthy-metrics", atLeast(0.85), "metered", "plain"),
			speed.versus("healthy-metrics-off", atLeast(0.97), "off", "plain"),
		},
	},
	{
		name: "keyed",
		arms: on(shape{partitions: 8, records: 10_000, keys: 1_000, block: 10_000},
			arm{name: "siding", job: job{Program: "siding-keyed", Slots: 100, Order: consumer.OrderKey, Nap: keyedNap}},
			arm{name: "bare", job: job{Program: "bare-pool", Slots: 100, Nap: keyedNap}}),
		lines: []line{duration.versus("keyed", atMost(1.15), "siding", "bare")},
	},
	{
		name: "keys", // ten thousand handlers at a time
		arms: on(shape{partitions: 8, records: 1_000_000, keys: 1_000_000, zipf: true, block: 1},
			arm{name: "siding", job: job{Program: "siding-keyed", Slots: keysSlots, Order: consumer.OrderKey, Nap: keysNap, Heap: serviceHeap}},
			arm{name: "unordered", job: job{Program: "siding-keyed", Slots: keysSlots, Order: consumer.OrderNone, Nap: keysNap, Heap: serviceHeap}}),
		lines: []line{
			duration.versus("keys", atMost(1.6), "siding", "unordered"),
			cpuTime.versus("keys-cpu", atMost(1.2), "siding", "unordered"),
			quantity{"handlers", report.atOnce}.alone("keys-at-once", atLeast(keysSlots), "siding").always(),
		},
	},
	{
		name:   "poison",
		rounds: longRounds,
		arms: []arm{
			{name: "poisoned", job: poisonJob(poisonFor, poisonOne), warm: poisonJob(poisonWarm, poisonOne), run: runPoison},
			{name: "clean", job: poisonJob(poisonFor, 0), warm: poisonJob(poisonWarm, 0), run: runPoison},
		},
		lines: []line{tail.versus("poison", atMost(1.2), "poisoned", "clean")},
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
		lines: []line{{name: "draining", unit: "x", goal: atLeast(0.9), of: func(r map[string]report) float64 { return r["siding"].kept() }, absolute: keptRates}},
	},
	{
		name:   "dlq-down",
		rounds: 1,
		kafka:  true,
		arms: []arm{
			{name: "down", job: dlqDownJob(dlqDownLasts, true), warm: dlqDownJob(dlqDownWarm, true), run: runDLQDown},
			{name: "clean", job: dlqDownJob(dlqDownLasts, false), warm: dlqDownJob(dlqDownWarm, false), run: runDLQDown},
		},
		lines: []line{speed.versus("dlq-down", atLeast(0.95), "down", "clean")},
	},
	{
		name:   "restart",
		rounds: longRounds,
		arms: on(shape{partitions: restartLanes, records: restartRecords, block: restartRecords / restartLanes},
			arm{name: "clean", job: restartJob, run: ended},
			arm{name: "killed", job: restartJob, run: killed(restartAfter)},
			arm{name: "grouped", job: restartJob, run: killed(restartAfter, restartAgain)}),
		lines: []line{
			duration.versus("restart", atMost(1.3), "killed", "clean"),
			duration.versus("restart-groups", atMost(2), "grouped", "clean"),
		},
	},
	{ // not before poison: the broker deletes its data then
		name:   "failing",
		rounds: shortRounds,
		arms:   bridges(job{}),
		lines: []line{
			speed.versus("failing", atLeast(0.85), "siding", "bare"),
			cpuTime.versus("failing-cpu", atMost(1.5), "siding", "bare"),
		},
	},
	{
		name:   "failing-dlq",
		rounds: shortRounds,
		arms:   bridges(job{Dead: true}),
		lines: []line{
			speed.versus("failing-dlq", atLeast(0.8), "siding", "bare"),
			cpuTime.versus("failing-dlq-cpu", atMost(1.5), "siding", "bare"),
		},
	},
	{
		name: "failing-whole",
		arms: bridges(job{Whole: true}),
		lines: []line{
			speed.versus("failing-whole", atLeast(0.75), "siding", "bare"),
			cpuTime.versus("failing-whole-cpu", atMost(1.5), "siding", "bare"),
		},
	},
	{
		name:   "delays",
		rounds: longRounds,
		arms:   []arm{{name: "siding", job: delaysJob(delaysTiers, delaysRate, delaysRecords), warm: delaysJob(delaysTiers, delaysRate, delaysWarm), run: runDelays}},
		lines: []line{
			tooEarly.alone("delays-early", atMost(0), "siding").always(),
			lateness(0).alone("delays-p99-90s", atMost(100), "siding"),
			lateness(1).alone("delays-p99-2m", atMost(100), "siding"),
			heapUsed.alone("delays-heap", atMost(parkedHeap), "siding").always(),
			quantity{"x", report.refetched}.alone("delays-refetched", atMost(1.1), "siding"),
		},
	},
	{
		name:   "due",
		rounds: longRounds,
		arms: []arm{
			{name: "siding", job: dueJob(dueRecords, dueBudget), warm: dueJob(dueWarm, dueBudget), run: runDelays},
			{name: "evicted", job: dueJob(dueRecords, 0), warm: dueJob(dueWarm, 0), run: runDelays, aside: true},
		},
		lines: []line{
			tail.alone("due", atMost(20), "siding"),
			cpuTime.alone("due-cpu", atMost(20), "siding"), // at this rate one CPU
			tooEarly.alone("due-early", atMost(0), "siding").always(),
		},
	},
	{
		name:   "parked",
		rounds: longRounds,
		cold:   true, // a round reads gigabytes
		open:   manyArms,
		lines: []line{
			lateness(0).alone("parked", atMost(100), "siding"),
			tooEarly.alone("parked-early", atMost(0), "siding").always(),
			heapUsed.alone("parked-heap", atMost(manyHeap), "siding").always(),
		},
	},
	{
		name:    "redrive",
		letters: 1_000_000,
		arms: []arm{
			{name: "siding", job: job{Program: "siding-redrive", Heap: serviceHeap}, run: runRedrive},
			{name: "bare", job: job{Program: "bare-redrive", Heap: serviceHeap}, run: runRedrive},
		},
		lines: []line{speed.versus("redrive", atLeast(0.7), "siding", "bare")},
	},
	{
		name:    "summary",
		rounds:  shortRounds,
		letters: 1_000_000,
		arms: []arm{
			{name: "siding", job: job{Program: "siding-summary"}, run: unchecked},
			{name: "bare", job: job{Program: "bare-read"}, run: unchecked},
		},
		lines: []line{
			duration.versus("summary", atMost(1.3), "siding", "bare"),
			heapUsed.alone("summary-heap", atMost(summaryHeap), "siding").always(),
		},
	},
	{
		name:    "summary-4m",
		rounds:  1,
		cold:    true,      // its time decides nothing
		letters: 4_000_000, // which take as long to write as all the rounds with one
		arms:    []arm{{name: "siding", job: job{Program: "siding-summary"}, run: unchecked}},
		lines:   []line{heapUsed.alone("summary-4m-heap", atMost(summaryHeap), "siding").always()},
	},
	{
		name:    "list",
		rounds:  shortRounds,
		letters: 1_000_000,
		settled: listResolved,
		arms: []arm{
			{name: "all", job: job{Program: "siding-list"}, run: unchecked},
			{name: "open", job: job{Program: "siding-list", Resolved: listResolved}, run: unchecked},
		},
		lines: []line{
			middle.alone("list-all", atMost(300), "all"),
			middle.alone("list-open", atMost(300), "open"),
		},
	},
	{
		name:   "partitions",
		rounds: 1,
		cold:   true, // a group takes a minute to start on two CPUs
		memory: true,
		arms:   slices.Concat(membersOf("10000", membersMany), membersOf("200", membersFew)),
		lines: []line{
			quantity{"s", func(r report) float64 { return r.Ready }}.alone("partitions-start", atMost(30), "siding-10000"),
			quantity{"s", func(r report) float64 { return r.Joined }}.alone("partitions-join", atMost(10), "siding-10000"),
			quantity{"KiB", func(r report) float64 { return float64(r.Commit) / (1 << 10) }}.alone("partitions-commit", atMost(64), "siding-10000"),
			{name: "partitions-heap", unit: "KiB a partition", goal: atMost(64), of: func(round map[string]report) float64 {
				many, few := round["siding-10000"].HeapInuse, round["siding-200"].HeapInuse
				return (float64(many) - float64(few)) / (1 << 10) / (membersMany - membersFew)
			}},
			grown("partitions-cpu", "10000", "200"),
		},
	},
	{
		name:  "lanes",
		arms:  slices.Concat(lanes("8", 8), lanes("1000", 1000)),
		lines: []line{grown("lanes", "1000", "8")},
	},
}

// grown is siding's CPU time by the bare program's, with many partitions by that with few.
func grown(name, many, few string) line {
	return line{name: name, unit: "x", goal: atMost(1.1), of: func(round map[string]report) float64 {
		at := func(lanes string) float64 {
			return round["siding-"+lanes].cpuPerMillion() / round["bare-"+lanes].cpuPerMillion()
		}
		return at(many) / at(few)
	}, absolute: cpuTime.each("siding-"+many, "bare-"+many, "siding-"+few, "bare-"+few)}
}

// consumers are the loops over a topic, in processes that hold so many bytes besides.
func consumers(s shape, heap int) []arm {
	return on(s,
		arm{name: "siding", job: job{Program: "siding-consume", Heap: heap}},
		arm{name: "bare", job: job{Program: "bare-consume", Heap: heap}})
}

// lanes are the loops over a topic of many partitions, or of few.
func lanes(label string, partitions int32) []arm {
	const records = 8_000_000
	both := consumers(shape{partitions: partitions, records: records, block: records / 1000}, serviceHeap)
	for i := range both {
		both[i].name += "-" + label
	}
	return both
}

// membersOf are siding's group and the bare one, with so many partitions.
func membersOf(label string, partitions int) []arm {
	of := func(program string) arm {
		return arm{
			name: program + "-" + label,
			job:  job{Program: program + "-members", Members: membersCount, Heap: serviceHeap},
			run: func(t *turn) report {
				t.job.Data = t.emptyOf("src", partitions)
				for p := range t.job.Data.Ends {
					t.job.Data.Ends[p] = int64(membersRecords / partitions)
				}
				return consumeAll(t)
			},
		}
	}
	return []arm{of("siding"), of("bare")}
}

// bridges let all records fail, and write the copies that the job describes.
func bridges(j job) []arm {
	j.Heap, j.Headers = serviceHeap, allHeaders
	siding, bare := j, j
	siding.Program, bare.Program = "siding-bridge", "bare-bridge"
	return on(shape{partitions: 8, records: 2_000_000, block: 4096},
		arm{name: "siding", job: siding, run: runSidingBridge},
		arm{name: "bare", job: bare, run: runBareBridge})
}

// runSidingBridge lets each group have its own tier: otherwise a lane would have to read an earlier
// round's copies.
func runSidingBridge(t *turn) report {
	rep := consumeAll(t)
	if t.job.Dead {
		t.weigh(".dlq.")
	} else {
		t.weigh(".retry.")
	}
	return rep
}

func runBareBridge(t *turn) report {
	t.job.To = t.empty("copies").Topic
	rep := consumeAll(t)
	t.weigh("copies")
	return rep
}
