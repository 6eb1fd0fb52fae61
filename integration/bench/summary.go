package main

import "context"

// The letters that are counted. A DLQ of four million is written for its heap
// alone: it takes as long to write as all the rounds with one.
const (
	summaryLetters = 1_000_000
	summaryMany    = 4_000_000
)

// summaryHeap is the heap in MiB that a summary may hold at its end, however many letters there
// are.
const summaryHeap = 64

func summaryBench(ctx context.Context, r *rig) ([]arm, error) {
	l, err := r.writeLetters(ctx, "src", summaryLetters)
	if err != nil {
		return nil, err
	}
	return []arm{
		r.reader("siding", "siding-summary", l, 0),
		r.reader("bare", "bare-read", l, 0),
	}, nil
}

// summaryManyBench has no warm-up: its time decides nothing.
func summaryManyBench(ctx context.Context, r *rig) ([]arm, error) {
	l, err := r.writeLetters(ctx, "src", summaryMany)
	if err != nil {
		return nil, err
	}
	siding := r.reader("siding", "siding-summary", l, 0)
	return []arm{{siding.name, func(ctx context.Context, round int) (report, error) {
		if round == 0 {
			return report{}, nil
		}
		return siding.run(ctx, round)
	}}}, nil
}

// reader is an arm that only reads, as often as it is run.
func (r *rig) reader(name, program string, l letters, resolved int) arm {
	return arm{name, func(ctx context.Context, _ int) (report, error) {
		return r.run(ctx, name, job{Program: program, Data: l.data, Ledger: l.ledger, Resolved: resolved})
	}}
}
