package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/leak"
	"github.com/sidingkafka/siding/redrive"
)

// secrecy: what siding writes about records. A log is read by more people, and is kept for longer,
// than the topics that it is about. So it has none of a record's key, value and headers, at any
// level, unless an error of the handler quotes them.
var secrecy = map[string]func(*testing.T, *fixture){
	"by partition: nothing of a record is in logs, spans and metrics": func(t *testing.T, f *fixture) { leaksNothing(t, f, consumer.OrderPartition) },
	"by key: nothing of a record is in logs, spans and metrics":       func(t *testing.T, f *fixture) { leaksNothing(t, f, consumer.OrderKey) },
}

// leaksNothing lets marked records fail in each way, redrives some in vain and then with success,
// and looks for the mark in whatever is written about them.
func leaksNothing(t *testing.T, f *fixture, order consumer.Order) {
	t.Helper()
	finder := leak.New()
	meters := finder.MeterProvider()
	var fixed atomic.Bool
	cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
		does, _, _ := strings.Cut(string(r.Value), ":")
		switch d := consumer.DeliveryOf(ctx, r); {
		case does == "fine", fixed.Load(), does == "later" && d.Attempt > 1:
			return nil
		case does == "later":
			return classify.RetryAfter(errBusy, time.Second)
		case does == "terminal":
			return classify.Terminal(classify.As(errors.New("unknown SKU"), "sku"))
		case does == "undecodable":
			return classify.Undecodable(errors.New("no such schema"))
		case does == "discard":
			return classify.Discard(errors.New("out of date"))
		case does == "hang":
			<-ctx.Done()
			return ctx.Err()
		case does == "panic":
			panic("no such branch")
		}
		return classify.Retryable(classify.As(errBusy, "busy"))
	})
	cfg.Order = order
	cfg.Policy.HandlerTimeout, cfg.Policy.NoteDiscards = 200*time.Millisecond, true
	cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: time.Millisecond}
	cfg.Logger, cfg.TracerProvider, cfg.MeterProvider = finder.Logger(), finder.TracerProvider(), meters
	f.CreateTopic(f.topic+".dlq", 2)
	f.limit(t, f.topic+".dlq", 20_000)
	c := f.Run(cfg)

	marked := func(does string, size int) *kgo.Record {
		return &kgo.Record{
			Topic: f.topic, Partition: 1, Key: []byte(finder.Mark("-key-" + does)), Value: append([]byte(does+":"+finder.Mark("-value")), noise(size)...),
			Headers: []kgo.RecordHeader{{Key: "user", Value: []byte(finder.Mark("-header"))}, {Key: finder.Mark("-header-key"), Value: nil}},
		}
	}
	var records []*kgo.Record
	ways := map[string]headers.Reason{
		"terminal": headers.ReasonTerminal, "undecodable": headers.ReasonDecode, "panic": headers.ReasonPanic,
		"hang": headers.ReasonExhausted, "busy": headers.ReasonExhausted,
	}
	for does := range ways {
		records = append(records, marked(does, 0))
	}
	fine, later, discarded, large := marked("fine", 0), marked("later", 0), marked("discard", 0), marked("large", 40_000)
	broken := marked("malformed", 0)
	broken.Topic = f.tierTopic(tier1)
	broken.Headers = append(broken.Headers, without(f.copyOf(1_000_000, 1, time.Now()).Append(nil), headers.Attempts)...)
	f.Produce(append(records, fine, later, discarded, large, broken)...)
	f.Handled(fine, 1)
	f.Handled(later, 1)
	f.Discarded(discarded, "")
	for _, r := range records {
		does, _, _ := strings.Cut(string(r.Value), ":")
		f.DeadLettered(r, ways[does])
	}
	if m := f.DeadLettered(large, headers.ReasonExhausted); !m.ValueOmitted {
		t.Errorf("the large record's letter is %+v, want it without the value", m)
	}
	f.find(t, f.topic+".dlq", func(l *kgo.Record) bool { return string(l.Key) == string(broken.Key) })

	showHealth := func() {
		if err := meters.Collect(t.Context()); err != nil {
			t.Error(err)
		}
		health, err := json.Marshal(c.Health())
		if err != nil {
			t.Error(err)
		}
		finder.Show("health", string(health))
	}
	showHealth()
	f.redrivenInVain(t, finder)
	fixed.Store(true)
	f.redrivenWell(t, finder)
	showHealth()
	stop(t, c)
	f.ownWords(t, finder)
	for _, kind := range []string{"log", "span", "metric", "health", "event", "header", "ledger", "commit"} {
		if finder.Shown(kind) == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
	for _, found := range finder.Found() {
		t.Errorf("it contains parts of records: %s", found)
	}
}

// redrives runs a plan of letters, and shows finder what the run reports.
func (f *fixture) redrives(t *testing.T, finder *leak.Finder, s redrive.Selection) (redrive.Outcome, error) {
	t.Helper()
	log := finder.Logger()
	r, err := redrive.New(redrive.Config{Kafka: append(f.Opts(), kgo.WithLogger(kslog.New(log))), Logger: log})
	must(t, err)
	s.Topic = f.topic + ".dlq"
	p, err := r.Plan(t.Context(), s)
	must(t, err)
	o, err := r.Run(t.Context(), p, redrive.RunOptions{
		By: "ann", Why: "OPS-1", Pace: redrive.Pace{Ramp: -1, Window: time.Second, Tolerate: 10},
		On: func(e redrive.Event) { finder.Show("event", fmt.Sprintf("%+v", e)) },
	})
	finder.Show("event", fmt.Sprintf("%+v %v", o, err))
	return o, err
}

// redrivenInVain redrives a letter that fails as before.
func (f *fixture) redrivenInVain(t *testing.T, finder *leak.Finder) {
	t.Helper()
	_, err := f.redrives(t, finder, redrive.Selection{Filter: dlq.Filter{Classes: []string{"sku"}}})
	if _, failed := errors.AsType[*redrive.FailedAgainError](err); !failed {
		t.Fatalf("the run whose letter fails again ended with %v", err)
	}
}

// redrivenWell redrives the letters that may succeed, edited, and discards the others.
func (f *fixture) redrivenWell(t *testing.T, finder *leak.Finder) {
	t.Helper()
	o, err := f.redrives(t, finder, redrive.Selection{
		Filter: dlq.Filter{Classes: []string{"sku", "busy"}}, Edit: redrive.Edit{Set: []kgo.RecordHeader{{Key: "fixed", Value: []byte("yes")}}},
	})
	if err != nil || o.Counts.Succeeded < 2 {
		t.Fatalf("the run that succeeds ended with %v, and %+v", err, o)
	}
	l := dlq.NewLedger(f.topic+".dlq", f.topic+".dlq.ledger", f.Opts()...)
	if n, err := l.Discard(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ann", Why: "OPS-2"}); err != nil || n == 0 {
		t.Fatalf("%d letters were discarded, %v", n, err)
	}
}

// ownWords shows what siding itself wrote: its headers on copies, the ledger, and the metadata of
// commits.
func (f *fixture) ownWords(t *testing.T, finder *leak.Finder) {
	t.Helper()
	siblings := []string{f.tierTopic(tier1), f.tierTopic(tier2), f.topic + ".dlq", f.topic + ".dlq.ledger"}
	left := map[string]int64{}
	f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
		ends, err := cl.ListEndOffsets(ctx, siblings...)
		ends.Each(func(o kadm.ListedOffset) {
			if o.Offset > 0 {
				left[fmt.Sprint(o.Topic, o.Partition)] = o.Offset - 1
			}
		})
		if err == nil {
			var commits kadm.OffsetResponses
			commits, err = cl.FetchOffsets(ctx, f.group)
			commits.Each(func(o kadm.OffsetResponse) { finder.Show("commit", o.Metadata) })
		}
		return err
	})
	cl := f.client(t, kgo.ConsumeTopics(siblings...), kgo.FetchMaxWait(200*time.Millisecond), kgo.KeepControlRecords())
	defer cl.Close()
	ctx, cancel := f.within()
	defer cancel()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%v are not read to their ends: %v", left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if at := fmt.Sprint(r.Topic, r.Partition); r.Offset >= left[at] {
				delete(left, at)
			}
			if r.Topic == f.topic+".dlq.ledger" {
				finder.Show("ledger", fmt.Sprintf("%s %s %q", r.Key, r.Value, r.Headers))
				return
			}
			for _, h := range r.Headers {
				if strings.HasPrefix(h.Key, "dlq-") {
					finder.Show("header", fmt.Sprintf("%s: %s", h.Key, h.Value))
				}
			}
		})
	}
}
