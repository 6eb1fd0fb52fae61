package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// A workload is what each program does in its turn.
type workload struct {
	name string
	job  work.Job
}

const partitions = 8

// workloads are in the order of the tables. The handlers of all but keyed do nothing.
var workloads = []workload{
	{"healthy", work.Job{Records: 2_000_000}},
	{"dead", work.Job{Records: 100_000, OneIn: 1}},
	{"poison", work.Job{
		Records: 6_000, Rate: 400, OneIn: 100,
		Waits: []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond},
	}},
	{"keyed", work.Job{Records: 10_000, Keys: 1_000, Slots: 100, Nap: 5 * time.Millisecond}},
}

// choose returns the workloads with the names, all for none.
func choose(names []string) (chosen []workload, err error) {
	for _, w := range workloads {
		if len(names) == 0 || slices.Contains(names, w.name) {
			chosen = append(chosen, w)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(workloads, func(w workload) bool { return w.name == name }) {
			return nil, fmt.Errorf("no workload named %s", name)
		}
	}
	return chosen, nil
}

// sized is the job with so much of its records, enough for each key and partition.
func (w workload) sized(share float64) work.Job {
	j := w.job
	j.Partitions = partitions
	j.Records = max(int(share*float64(j.Records)), j.Keys, 100)
	return j
}
