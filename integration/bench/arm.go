package main

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// An arm is one program of a bench.
type arm struct {
	name  string
	job   job   // what its program does; where is up to the turn
	warm  job   // the same for the warm-up; without a program: as always
	shape shape // of the topic that it reads, which is written once for all arms
	// run takes one turn; nil: the program reads the whole topic, and commits that.
	run   func(context.Context, *turn) (report, error)
	aside bool   // it runs only when asked for by name
	exe   string // binary of an earlier build; empty: this one
}

// on returns the arms, each of which reads a topic of the shape.
func on(s shape, arms ...arm) []arm {
	for i := range arms {
		arms[i].shape = s
	}
	return arms
}

// A stock is what was written for a bench before its turns.
type stock struct {
	*rig
	topics  map[shape]data
	letters letters
	copies  map[string]int64 // bytes of the copies of an arm's last turn
}

// A turn is one run of an arm. Round 0 is the warm-up.
type turn struct {
	*stock
	arm   arm
	round int
	job   job
	own   []string // topics of this turn alone, with siblings
}

// turn runs the arm, and deletes what was only there for this.
func (s *stock) turn(ctx context.Context, a arm, round int) (report, error) {
	t := &turn{stock: s, arm: a, round: round, job: a.job}
	if round == 0 && a.warm.Program != "" {
		t.job = a.warm
	}
	t.job.Group, t.job.Data, t.job.Ledger = s.group(a.name, round), s.topics[a.shape], s.letters.ledger
	run := a.run
	if run == nil {
		run = consumeAll
	}
	rep, err := run(ctx, t)
	if err != nil {
		return report{}, err
	}
	for _, topic := range t.own {
		err = errors.Join(err, s.deleteTopics(ctx, topic))
	}
	return rep, err
}

// unchecked runs the program, and nothing else.
func unchecked(ctx context.Context, t *turn) (report, error) {
	return t.run(ctx, t.arm.name, t.arm.exe, t.job)
}

// consumeAll also checks that the group has committed the whole topic.
func consumeAll(ctx context.Context, t *turn) (report, error) {
	rep, err := unchecked(ctx, t)
	if err != nil {
		return report{}, err
	}
	return rep, t.consumed(ctx, t.job.Group, t.job.Data)
}

// offered gives the program an empty topic, to which it writes while it reads.
func offered(ctx context.Context, t *turn) (report, error) {
	if err := t.source(ctx); err != nil {
		return report{}, err
	}
	return unchecked(ctx, t)
}

// source makes an empty topic what the program reads.
func (t *turn) source(ctx context.Context) (err error) {
	t.job.Data, err = t.empty(ctx, "src")
	return err
}

// empty creates a topic for this turn.
func (t *turn) empty(ctx context.Context, label string) (data, error) {
	const partitions = 8
	topic, err := t.topic(ctx, fmt.Sprintf("%s-%s-%d", t.arm.name, label, t.round), partitions)
	t.own = append(t.own, topic)
	return data{Topic: topic, Ends: make([]int64, partitions)}, err
}

// read checks that each of the topics holds so many records, and that the group has committed them:
// none was lost, and none is there twice.
func (t *turn) read(ctx context.Context, records int, topics ...string) error {
	for _, topic := range topics {
		d, err := t.holds(ctx, records, topic)
		if err == nil {
			err = t.consumed(ctx, t.job.Group, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holds checks that the topic holds so many records.
func (t *turn) holds(ctx context.Context, records int, topic string) (data, error) {
	d, err := t.filled(ctx, topic)
	if err == nil && d.records() != int64(records) {
		err = fmt.Errorf("%s holds %d records, want %d", topic, d.records(), records)
	}
	return d, err
}

// weigh measures the copies in the topics whose names contain the label, and deletes them, so that
// the broker need not write gigabytes to its disk. It fails unless the bare program writes as much
// as siding.
func (t *turn) weigh(ctx context.Context, label string) (err error) {
	if t.copies[t.arm.name], err = t.size(ctx, label); err != nil {
		return err
	}
	siding, bare := t.copies["siding"], t.copies["bare"]
	both := siding != 0 && bare != 0 // or only one of them is run
	if both && math.Abs(float64(bare)/float64(siding)-1) > 0.05 {
		err = fmt.Errorf("siding's copies take %d bytes and the bare program's %d: their headers are not the same", siding, bare)
	}
	return errors.Join(err, t.deleteTopics(ctx, label))
}
