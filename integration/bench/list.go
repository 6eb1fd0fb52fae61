package main

import "context"

// The listed letters: the first ones are resolved, and the list has to skip them all on the way to
// the first open one.
const (
	listLetters  = 1_000_000
	listResolved = 10_000
	listFirst    = 300 // milliseconds to the first row
)

func listBench(ctx context.Context, r *rig) ([]arm, error) {
	l, err := r.writeLetters(ctx, "src", listLetters)
	if err != nil {
		return nil, err
	}
	if err := r.writeDiscards(ctx, l, listResolved); err != nil {
		return nil, err
	}
	return []arm{
		r.reader("all", "siding-list", l, 0),
		r.reader("open", "siding-list", l, listResolved),
	}, nil
}
