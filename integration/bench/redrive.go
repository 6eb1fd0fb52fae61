package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
)

// The redriven letters of the bench of redrive, and their tier.
const (
	redriveLetters = 1_000_000
	redriveTier    = 5 * time.Second
)

// redriveBench writes the letters once. Each run has a tier and a ledger of its own, created as
// siding creates them, so that all letters are open.
func redriveBench(ctx context.Context, r *rig) ([]arm, error) {
	l, err := r.writeLetters(ctx, "src", redriveLetters)
	if err != nil {
		return nil, err
	}
	size := map[string]int64{}
	program := func(name string) arm {
		return arm{name, func(ctx context.Context, round int) (report, error) {
			label := fmt.Sprintf("%s%d", name, round)
			rep, err := r.redrive(ctx, l, name+"-redrive", label)
			if err != nil {
				return report{}, err
			}
			if size[name], err = r.size(ctx, ".retry-"+label); err != nil {
				return report{}, err
			}
			return rep, errors.Join(sameCopies(size["siding"], size["bare"]), r.deleteTopics(ctx, "-"+label))
		}}
	}
	return []arm{program("siding"), program("bare")}, nil
}

// sameCopies fails unless the bare program writes as much as siding.
func sameCopies(siding, bare int64) error {
	if siding == 0 || bare == 0 { // only one of them is run
		return nil
	}
	if d := math.Abs(float64(bare)/float64(siding) - 1); d > 0.05 {
		return fmt.Errorf("siding's copies take %d bytes and the bare program's %d: their headers are not the same", siding, bare)
	}
	return nil
}

// redrive runs one program. The group has a member, since siding would wait for one; the member
// reads the empty source and ignores the tier.
func (r *rig) redrive(ctx context.Context, l letters, program, label string) (report, error) {
	naming := retrytopics.Naming{Retry: "{topic}.retry-" + label + ".{delay}", Ledger: "{topic}.dlq.ledger-" + label}
	siblings, err := naming.Siblings(l.source, l.group, redriveTier)
	if err != nil {
		return report{}, err
	}
	if _, err := retrytopics.Ensure(ctx, r.admin, retrytopics.Spec{}, siblings); err != nil {
		return report{}, err
	}
	tier := siblings.Tiers[0].Topic
	at := kadm.Offsets{}
	for p := range l.Ends {
		at.AddOffset(tier, int32(p), 0, -1)
	}
	if err := r.admin.CommitAllOffsets(ctx, l.group, at); err != nil {
		return report{}, fmt.Errorf("committing: %w", err)
	}
	leave, err := r.join(ctx, l.group, l.source)
	if err != nil {
		return report{}, err
	}
	rep, err := r.run(ctx, program, job{Program: program, Group: l.group, Data: l.data, Naming: naming, To: tier, Heap: serviceHeap})
	return rep, errors.Join(err, leave(ctx))
}

// join adds a member to the group, and waits until it has joined.
func (r *rig) join(ctx context.Context, group, topic string) (leave func(context.Context) error, err error) {
	in := make(chan struct{}, 1)
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(r.seeds...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			select {
			case in <- struct{}{}:
			default:
			}
		}),
	)
	if err != nil {
		return nil, err
	}
	leave = func(ctx context.Context) error {
		defer cl.Close()
		return cl.LeaveGroupContext(ctx)
	}
	select {
	case <-in:
		return leave, nil
	case <-ctx.Done():
		cl.Close()
		return nil, ctx.Err()
	}
}
