package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/sidingkafka/siding/integration/peers/internal/programs"
	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// options are what the command line says about all workloads.
type options struct {
	brokers   []string // empty: embedded
	workloads []workload
	programs  []programs.Program
	rounds    int
	scale     float64
	log       io.Writer
}

// timeLimit ends a program that hangs. The longest takes a minute.
const timeLimit = 3 * time.Minute

// runAll runs each workload with each program, in rounds in which the programs take turns. The
// first round is a warm-up with a tenth of the records.
func runAll(ctx context.Context, o options) (results []result, err error) {
	seeds, kind := o.brokers, kindKafka
	if len(seeds) == 0 {
		seed, stop, err := startBroker(ctx)
		if err != nil {
			return nil, fmt.Errorf("starting the embedded broker: %w", err)
		}
		defer stop()
		seeds, kind = []string{seed}, kindEmbedded
	}
	r, err := connect(seeds)
	if err != nil {
		return nil, err
	}
	defer r.cl.Close()
	for _, w := range o.workloads {
		rs, err := runWorkload(ctx, r, w, o)
		for i := range rs {
			rs[i].Broker = kind
		}
		results = append(results, rs...)
		if err != nil {
			return results, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return results, nil
}

// runWorkload returns a result for each program.
func runWorkload(ctx context.Context, r *rig, w workload, o options) (_ []result, err error) {
	suffix := fmt.Sprintf("%08x", rand.Uint32())
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if cerr := errors.Join(r.remove(ctx, suffix), r.forget(ctx, suffix)); err == nil {
			err = cerr
		}
	}()
	tries := make([][]try, len(o.programs))
	for round := range o.rounds + 1 {
		share := o.scale
		if round == 0 {
			share /= 10
		}
		j := w.sized(share)
		j.Seeds = r.seeds
		if j.Rate == 0 && round <= 1 { // the others read what the first one has written
			j.Topic = topicOf(w, suffix, round)
			if err := r.create(ctx, j.Topic); err != nil {
				return nil, err
			}
			if err := r.fill(ctx, j); err != nil {
				return nil, err
			}
		}
		for turn := range o.programs {
			n := (turn + round) % len(o.programs) // none is always the first one
			j, p := j, o.programs[n]
			j.Program, j.Group = p.Name, fmt.Sprintf("peers-%s-%s-%d", p.Name, suffix, round)
			if j.Topic = topicOf(w, suffix, min(round, 1)); j.Rate > 0 {
				j.Topic = j.Group
			}
			j.DLQ = j.Topic + ".dlq." + j.Group
			t := takeTurn(ctx, r, p, j)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			t.print(o.log, w.name, p.Name, round)
			if round > 0 {
				tries[n] = append(tries[n], t)
			}
			if err := r.remove(ctx, ".dlq."+j.Group); err != nil {
				return nil, err
			}
		}
	}
	results := make([]result, len(tries))
	for n, ts := range tries {
		results[n] = judge(w, o.programs[n].Name, ts)
	}
	return results, nil
}

func topicOf(w workload, suffix string, round int) string {
	return fmt.Sprintf("peers-%s-%s-%d", w.name, suffix, round)
}

// takeTurn runs a program in a process of its own, and checks what it did.
func takeTurn(ctx context.Context, r *rig, p programs.Program, j work.Job) try {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	t := try{records: j.Records}
	if t.err = prepare(ctx, r, p, j); t.err != nil {
		return t
	}
	var c *process
	if c, t.err = start(ctx, j); t.err != nil {
		return t
	}
	if j.Rate > 0 {
		if _, t.err = c.line(); t.err != nil {
			return t
		}
		if t.err = r.offer(ctx, j); t.err != nil {
			c.stop()
			return t
		}
	}
	if t.rep, t.err = c.report(); t.err != nil {
		if ctx.Err() != nil {
			t.err = fmt.Errorf("not done after %v: %w", timeLimit, t.err)
		}
		return t
	}
	t.err = check(ctx, r, j, t.rep)
	return t
}

// prepare makes the topics of one turn alone.
func prepare(ctx context.Context, r *rig, p programs.Program, j work.Job) error {
	if j.Rate > 0 {
		if err := r.create(ctx, j.Topic); err != nil {
			return err
		}
		if err := r.warm(ctx, j); err != nil {
			return err
		}
	}
	if p.Provisions {
		return nil
	}
	return r.create(ctx, j.DLQ)
}
