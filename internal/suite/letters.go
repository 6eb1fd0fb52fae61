package suite

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// letters: dead letters that others wrote, and those whose source has changed.
var letters = map[string]func(*testing.T, *fixture){
	// All letters of a run came back with its mark, and it was done without a failure: it took a
	// dead letter without a class for a copy of its own, and counted none without a group.
	"a letter that is dead again has failed, whoever wrote it": func(t *testing.T, f *fixture) {
		f.Run(f.config(ok))
		for range 3 {
			f.Produce(&kgo.Record{Topic: f.topic + ".dlq", Value: []byte("{}"), Headers: []kgo.RecordHeader{{Key: "x-death", Value: []byte("1")}}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		defer func() { cancel(); <-ended }()
		cl := f.client(t, kgo.ConsumeTopics(f.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		go func() { // another program, which fails them again
			defer close(ended)
			defer cl.Close()
			for ctx.Err() == nil {
				cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
					if m, _ := headers.Parse(r.Headers); m.Redrive.ID != "" {
						cl.ProduceSync(ctx, &kgo.Record{Topic: f.topic + ".dlq", Value: r.Value, Headers: r.Headers})
					}
				})
			}
		}()
		r := newRedriver(t, f)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: f.topic + ".dlq", Target: redrive.Target{Topic: f.topic}})
		must(t, err)
		o, err := r.Run(t.Context(), p, byAnn(redrive.Pace{Ramp: -1, Window: 10 * time.Second}))
		if _, failed := errors.AsType[*redrive.FailedAgainError](err); !failed || o.State != redrive.Aborted || o.Counts.Sent != 1 || o.Counts.Failed != 1 {
			t.Errorf("the run ended with %v: %+v, want its canary failed", err, o)
		}
	},
	// Letters went into lanes that no consumer can ever have, and no verb brought them back.
	"after its source shrank a letter goes into no lane that cannot exist": func(t *testing.T, f *fixture) {
		stop(t, f.Run(f.config(ok)))
		for i := range int64(4) {
			putLetter(f, 1, i, int32(i%2), nil)
		}
		sent := dlq.Entry{State: dlq.Redriven, Run: "r", At: time.Now(), Target: headers.Position{Topic: f.tierTopic(tier1), Partition: 1}}
		f.Produce(sent.Record(f.topic+".dlq.ledger", 1, 1))
		f.DeleteTopic(f.topic)
		f.CreateTopic(f.topic, 1)
		f.Run(f.config(ok))
		r := newRedriver(t, f)
		var p *redrive.Plan
		eventually(t, "a plan leaves out what has no partition", func() bool {
			var err error
			p, err = r.Plan(t.Context(), redrive.Selection{Topic: f.topic + ".dlq", Filter: dlq.Filter{Match: func(l *dlq.Letter) bool { return l.Record.Offset > 1 }}})
			return err == nil && p.Letters == 1 && p.Skipped[redrive.SkippedNoPartition] == 1
		})
		if o, err := r.Run(t.Context(), p, byAnn(redrive.Pace{Ramp: -1, Window: time.Second})); err != nil || o.Counts.Succeeded != 1 {
			t.Errorf("the run ended with %v: %+v", err, o)
		}
		ledger := dlq.NewLedger(f.topic+".dlq", f.topic+".dlq.ledger", f.Opts()...)
		lost, err := redrive.FindLostCopies(t.Context(), redrive.Config{Kafka: f.Opts()}, ledger)
		must(t, err)
		n, err := ledger.Reopen(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.ReopenOptions{By: "ann", Why: "OPS-1", Pending: lost.Has})
		if n != 1 || err != nil {
			t.Errorf("%d letters are reopened, %v; want that of partition 1", n, err)
		}
		must(t, ledger.Read(t.Context(), nil, nil))
		if open, skipped := ledger.State(1, 1), ledger.State(1, 3); open != dlq.Reopened || skipped != "" {
			t.Errorf("the letters of partition 1 are %q and %q", open, skipped)
		}
	},
	// One letter with forged headers refused every plan without a filter, and plan and summary
	// counted the damaged ones differently.
	"letters that cannot be redriven stay one by one": func(t *testing.T, f *fixture) {
		f.Run(f.config(ok))
		putLetter(f, 1, 0, 1, nil)
		putLetter(f, 1, 1, 99, nil)
		putLetter(f, 1, 2, 1, func(h *kgo.RecordHeader) {
			if h.Key == headers.Attempts {
				h.Value = []byte("many")
			}
		})
		r := newRedriver(t, f)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: f.topic + ".dlq"})
		must(t, err)
		if want := map[string]int64{redrive.SkippedNoPartition: 1, redrive.SkippedDamaged: 1}; p.Letters != 1 || !maps.Equal(p.Skipped, want) {
			t.Errorf("the plan has %d letters and skips %v, want 1 and %v", p.Letters, p.Skipped, want)
		}
		s, err := dlq.NewLedger(f.topic+".dlq", f.topic+".dlq.ledger", f.Opts()...).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil || s.Open != 3 || s.Malformed != p.Skipped[redrive.SkippedDamaged] {
			t.Errorf("the summary is %+v, %v", s, err)
		}
		if o, err := r.Run(t.Context(), p, byAnn(redrive.Pace{Ramp: -1, Window: time.Second})); err != nil || o.Counts.Succeeded != 1 {
			t.Errorf("the run ended with %v: %+v", err, o)
		}
	},
}

func newRedriver(t *testing.T, f *fixture) *redrive.Redriver {
	t.Helper()
	r, err := redrive.New(redrive.Config{Kafka: f.Opts()})
	must(t, err)
	return r
}

func byAnn(p redrive.Pace) redrive.RunOptions {
	return redrive.RunOptions{By: "ann", Why: "OPS-1", Pace: p}
}

// putLetter writes a letter to a partition, of a record of the source. change, if not nil, is
// called for each header.
func putLetter(f *fixture, partition int32, offset int64, of int32, change func(*kgo.RecordHeader)) {
	m := f.copyOf(offset, 1, time.Now())
	m.Original.Partition, m.Reason, m.NotBefore = of, headers.ReasonTerminal, time.Time{}
	r := &kgo.Record{Topic: f.topic + ".dlq", Partition: partition, Value: []byte("x"), Headers: m.Append(nil)}
	for i := range r.Headers {
		if change != nil {
			change(&r.Headers[i])
		}
	}
	f.Produce(r)
}
