package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
)

// redriveTier is the tier of the redriven letters.
const redriveTier = 5 * time.Second

// runRedrive has a tier and a ledger of its own, created as siding creates them, so that all
// letters are open. The group has a member, since siding would wait for one; the member reads the
// empty source and ignores the tier.
func runRedrive(t *turn) (rep report) {
	l, label := t.letters, fmt.Sprintf("%s%d", t.arm.name, t.round)
	t.job.Group = l.group
	t.job.Naming = retrytopics.Naming{Retry: "{topic}.retry-" + label + ".{delay}", Ledger: "{topic}.dlq.ledger-" + label}
	t.do(func() error {
		siblings, err := t.job.Naming.Siblings(l.source, l.group, redriveTier)
		if err != nil {
			return err
		}
		if _, err := retrytopics.Ensure(t.ctx, t.admin, retrytopics.Spec{}, siblings); err != nil {
			return err
		}
		t.job.To = siblings.Tiers[0].Topic
		at := kadm.Offsets{}
		for p := range l.Ends {
			at.AddOffset(t.job.To, int32(p), 0, -1)
		}
		if err := t.admin.CommitAllOffsets(t.ctx, l.group, at); err != nil {
			return fmt.Errorf("committing: %w", err)
		}
		leave, err := join(t.ctx, t.rig, l.group, l.source)
		if err != nil {
			return err
		}
		rep, err = t.run(t.ctx, t.arm.name, t.arm.exe, t.job)
		return errors.Join(err, leave(t.ctx))
	})
	t.weigh(".retry-" + label)
	t.do(func() error { return t.deleteTopics(t.ctx, "-"+label) })
	return rep
}

// join adds a member to the group, and waits until it has joined.
func join(ctx context.Context, r *rig, group, topic string) (leave func(context.Context) error, err error) {
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

// sidingRedrive redrives all letters as fast as it can: no canary, no ramp and no limit of the lag.
// The measurement begins after the claim, before the first read, and ends when the last transaction
// with letters is committed. It does not include the plan.
func sidingRedrive(ctx context.Context, j job) (report, error) {
	var (
		m   meter
		rep report
	)
	r, err := redrive.New(redrive.Config{
		Kafka:  []kgo.Opt{kgo.SeedBrokers(j.Seeds...), kgo.ProducerBatchCompression(kgo.NoCompression())},
		Naming: j.Naming,
	})
	if err != nil {
		return report{}, err
	}
	p, err := r.Plan(ctx, redrive.Selection{Topic: j.Data.Topic})
	if err != nil {
		return report{}, err
	}
	o, err := r.Run(ctx, p, redrive.RunOptions{By: "bench", Pace: redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, Window: -1, MaxLag: -1}, On: func(e redrive.Event) {
		switch {
		case e.State == redrive.Sending:
			m.begin()
		case e.State == redrive.Watching && rep.Records == 0:
			rep = m.end(e.Counts.Sent)
		}
	}})
	if err == nil && (o.Counts.Sent != j.Data.records() || rep.Records != o.Counts.Sent) {
		err = fmt.Errorf("%d letters were sent of %d, and %d counted", o.Counts.Sent, j.Data.records(), rep.Records)
	}
	return rep, err
}
