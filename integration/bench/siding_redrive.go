package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

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
