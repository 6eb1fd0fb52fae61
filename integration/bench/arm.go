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
	run   func(*turn) report
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

// A turn is one run of an arm. Round 0 is the warm-up. Once something has failed, the further steps
// do nothing.
type turn struct {
	*stock
	ctx   context.Context
	arm   arm
	round int
	job   job
	own   []string // topics of this turn alone, with siblings
	err   error    // what failed first
}

// turn runs the arm, and deletes what was only there for this.
func (s *stock) turn(ctx context.Context, a arm, round int) (report, error) {
	t := &turn{stock: s, ctx: ctx, arm: a, round: round, job: a.job}
	if round == 0 && a.warm.Program != "" {
		t.job = a.warm
	}
	t.job.Group, t.job.Data, t.job.Ledger = s.group(a.name, round), s.topics[a.shape], s.letters.ledger
	run := a.run
	if run == nil {
		run = consumeAll
	}
	rep := run(t)
	for _, topic := range t.own {
		t.do(func() error { return s.deleteTopics(ctx, topic) })
	}
	return rep, t.err
}

// do makes a step.
func (t *turn) do(step func() error) {
	if t.err == nil {
		t.err = step()
	}
}

// unchecked runs the program, and nothing else.
func unchecked(t *turn) (rep report) {
	t.do(func() (err error) {
		rep, err = t.run(t.ctx, t.arm.name, t.arm.exe, t.job)
		return err
	})
	return rep
}

// consumeAll also checks that the group has committed the whole topic.
func consumeAll(t *turn) report {
	rep := unchecked(t)
	t.committed(t.job.Group, t.job.Data)
	return rep
}

// committed checks that a group has committed the whole topic.
func (t *turn) committed(group string, d data) {
	t.do(func() error { return t.consumed(t.ctx, group, d) })
}

// paced gives the program an empty topic, to which it writes while it reads.
func (t *turn) paced() report {
	t.source()
	return unchecked(t)
}

// source makes an empty topic what the program reads.
func (t *turn) source() { t.job.Data = t.empty("src") }

// empty creates a topic for this turn.
func (t *turn) empty(label string) data { return t.emptyOf(label, 8) }

func (t *turn) emptyOf(label string, partitions int) data {
	d := data{Ends: make([]int64, partitions)}
	t.do(func() (err error) {
		d.Topic, err = t.topic(t.ctx, fmt.Sprintf("%s-%s-%d", t.arm.name, label, t.round), int32(len(d.Ends)))
		t.own = append(t.own, d.Topic)
		return err
	})
	return d
}

// read checks that each of the topics holds so many records, and that the group has committed them:
// none was lost, and none is there twice.
func (t *turn) read(records int, topics ...string) {
	for _, topic := range topics {
		t.committed(t.job.Group, t.holds(records, topic))
	}
}

// holds checks that the topic holds so many records.
func (t *turn) holds(records int, topic string) (d data) {
	t.do(func() (err error) {
		d, err = t.filled(t.ctx, topic)
		if err == nil && d.records() != int64(records) {
			err = fmt.Errorf("%s holds %d records, want %d", topic, d.records(), records)
		}
		return err
	})
	return d
}

// weigh measures the copies in the topics whose names contain the label, and deletes them, so that
// the broker need not write gigabytes to its disk. It fails unless the bare program writes as much
// as siding.
func (t *turn) weigh(label string) {
	t.do(func() (err error) {
		if t.copies[t.arm.name], err = t.size(t.ctx, label); err != nil {
			return err
		}
		siding, bare := t.copies["siding"], t.copies["bare"]
		both := siding != 0 && bare != 0 // or only one of them is run
		if both && math.Abs(float64(bare)/float64(siding)-1) > 0.05 {
			err = fmt.Errorf("siding's copies take %d bytes and the bare program's %d: their headers are not the same", siding, bare)
		}
		return errors.Join(err, t.deleteTopics(t.ctx, label))
	})
}
