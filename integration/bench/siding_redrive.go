package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

// sidingRedrive brings all letters back, as fast as it can: no canary, no ramp
// and no limit of the lag. What is measured begins when the claim stands, with
// nothing read yet, and ends when the last transaction with letters is
// committed. The plan is not in it.
func sidingRedrive(ctx context.Context, j job) (report, error) {
	var (
		m   meter
		rep report
	)
	r, err := redrive.New(redrive.Config{
		Kafka:  []kgo.Opt{kgo.SeedBrokers(j.Seeds...), kgo.ProducerBatchCompression(kgo.NoCompression())},
		Naming: j.Naming,
		By:     "bench",
	})
	if err != nil {
		return report{}, err
	}
	p, err := r.Plan(ctx, redrive.Selection{Topic: j.Data.Topic})
	if err != nil {
		return report{}, err
	}
	o, err := r.Run(ctx, p, redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, Window: -1, MaxLag: -1}, func(e redrive.Event) {
		switch {
		case e.State == redrive.Sending:
			m.begin()
		case e.State == redrive.Watching && rep.Records == 0:
			rep = m.end(e.Counts.Sent)
		}
	})
	if err == nil && (o.Counts.Sent != j.Data.records() || rep.Records != o.Counts.Sent) {
		err = fmt.Errorf("%d letters were sent of %d, and %d counted", o.Counts.Sent, j.Data.records(), rep.Records)
	}
	return rep, err
}
