package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/peers/internal/programs"
	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// trial runs a program in this process, and writes its report once all its records are handled, all
// its dead letters written, and all its offsets committed.
func trial(ctx context.Context, j work.Job, stdout io.Writer) error {
	i := slices.IndexFunc(programs.All, func(p programs.Program) bool { return p.Name == j.Program })
	if i < 0 {
		return fmt.Errorf("no program named %s", j.Program)
	}
	r, err := connect(j.Seeds)
	if err != nil {
		return err
	}
	defer r.cl.Close()
	var (
		w               = work.New(j)
		running, cancel = context.WithCancel(ctx)
		ended           = make(chan error, 1)
	)
	defer cancel()
	go func() {
		err := programs.All[i].Run(running, j, w.Handle)
		if running.Err() == nil {
			err = errors.Join(errors.New("it ended before its work"), err)
		}
		ended <- err
		close(ended)
	}()
	rep, err := measure(ctx, r, j, w, ended, stdout)
	if err != nil {
		return err
	}
	cancel()
	if err := <-ended; err != nil {
		return fmt.Errorf("ending: %w", err)
	}
	return json.NewEncoder(stdout).Encode(rep)
}

// commitTime is how long an offset may take to be committed after its record. What it leaves is
// found by the check.
const commitTime = 10 * time.Second

// measure takes the report of a program that runs.
func measure(ctx context.Context, r *rig, j work.Job, w *work.Work, ended <-chan error, stdout io.Writer) (rep work.Report, err error) {
	await := func(what <-chan struct{}) error {
		select {
		case <-what:
			return nil
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if j.Rate > 0 {
		if err := await(w.Ready); err != nil {
			return rep, err
		}
		fmt.Fprintln(stdout, "ready")
	}
	if err := await(w.Handled); err != nil {
		return rep, err
	}
	healthy, _ := w.Seconds()
	until := func(holds func() (bool, error)) error {
		for {
			if is, err := holds(); is || err != nil {
				return err
			}
			if err := await(after(10 * time.Millisecond)); err != nil {
				return err
			}
		}
	}
	if failing := int64(j.Failing()); failing > 0 {
		if err := until(func() (bool, error) {
			ends, err := r.ends(ctx, j.DLQ)
			return sum(ends) >= failing, err
		}); err != nil {
			return rep, err
		}
	}
	rep = w.Report()
	if j.Rate > 0 {
		rep.Healthy = healthy
	}
	deadline := time.Now().Add(commitTime)
	return rep, until(func() (bool, error) {
		committed, ends, err := r.offsets(ctx, j)
		return slices.Equal(committed, ends) || time.Now().After(deadline), err
	})
}

// after returns a channel that is closed after a time.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

func sum(values []int64) (n int64) {
	for _, v := range values {
		n += v
	}
	return n
}
