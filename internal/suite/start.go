package suite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// start: whether a consumer starts, and where.
var start = map[string]func(*testing.T, *fixture){
	"a second Run is refused, and the first goes on": func(t *testing.T, f *fixture) {
		c := f.Run(f.config(ok))
		if err := c.Run(context.Background()); !errors.Is(err, consumer.ErrRunning) {
			t.Errorf("the second Run returned %v, want ErrRunning", err)
		}
		f.Handled(f.Produce(f.record("x"))[0], 1)
		stop(t, c)
		if err := c.Run(context.Background()); !errors.Is(err, consumer.ErrRunning) {
			t.Errorf("Run after the end returned %v, want ErrRunning", err)
		}
	},
	"a Run that is over before it begins returns nil": func(t *testing.T, f *fixture) {
		cfg := f.config(ok)
		cfg.Kafka = f.Opts()
		c, err := consumer.New(cfg)
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
	},
	"topics that do not exist are an error that names each": func(t *testing.T, f *fixture) {
		begun := map[string]*consumertest.Consumer{}
		for name, mode := range map[string]retrytopics.Mode{"create": retrytopics.Create, "verify": retrytopics.Verify, "off": retrytopics.Off} {
			cfg := f.config(ok)
			cfg.Topics, cfg.Provision.Mode = []string{f.topic + "-gone", f.topic, f.topic + "-lost"}, mode
			begun[name] = f.Begin(cfg)
		}
		for name, c := range begun {
			if err := c.Wait(); err == nil || !strings.Contains(err.Error(), f.topic+"-gone") || !strings.Contains(err.Error(), f.topic+"-lost") {
				t.Errorf("%s: Run returned %v, want an error that names both topics", name, err)
			}
		}
	},
	"siblings that are missing and may not be created are commands to run": func(t *testing.T, f *fixture) {
		cfg := f.config(ok)
		cfg.Provision.Mode = retrytopics.Verify
		err := f.Begin(cfg).Wait()
		var undone *retrytopics.ProvisionError
		if !errors.As(err, &undone) {
			t.Fatalf("Run returned %v, want an UndoneError", err)
		}
		for _, topic := range []string{f.tierTopic(tier1), f.tierTopic(tier2), f.topic + ".dlq", f.topic + ".dlq.ledger"} {
			i := slices.IndexFunc(undone.Commands, func(c string) bool { return strings.Contains(c, " --topic "+topic+" ") })
			if i < 0 || !slices.Contains(undone.Topics, topic) || !strings.Contains(err.Error(), topic) {
				t.Errorf("%s is not named: %v", topic, err)
				continue
			}
			for _, part := range []string{"kafka-topics.sh", "--create", "--partitions 2", "--replication-factor ", "--config retention.ms=", "--config cleanup.policy=", "--config max.message.bytes="} {
				if !strings.Contains(undone.Commands[i], part) {
					t.Errorf("the command for %s lacks %q: %s", topic, part, undone.Commands[i])
				}
			}
		}
		if topics := f.topics(t); len(topics) != 1 {
			t.Errorf("topics %v, want the source alone: nothing is to be created", topics)
		}
	},
	"StartLatest begins at the end, and a restart where it began": func(t *testing.T, f *fixture) {
		before := f.Produce(f.pinned("before", time.Time{}), f.pinned("before", time.Time{}))
		f.startPinned(t, consumer.StartLatest(), int64(len(before)))
		while := f.Produce(f.pinned("while", time.Time{}))[0] // no member runs
		f.runPinned(consumer.StartLatest())
		f.Handled(while, 1)
		for _, r := range before {
			f.unhandled(t, r)
		}
	},
	"StartEarliest begins at the start, and a restart where it began": func(t *testing.T, f *fixture) {
		before := f.Produce(f.pinned("before", time.Time{}), f.pinned("before", time.Time{}))
		f.runPinned(consumer.StartEarliest())
		f.handledOnce(before)
		f.committed(t, f.topic, 1, 2)
	},
	"StartAt begins at the first record as young, and a restart where it began": func(t *testing.T, f *fixture) {
		at := time.UnixMilli(time.Now().UnixMilli()).Add(-time.Hour)
		old := f.Produce(f.pinned("old", at.Add(-time.Minute)), f.pinned("older", at.Add(-time.Hour)))
		young := f.Produce(f.pinned("young", at), f.pinned("younger", at.Add(time.Minute)))
		f.startPinned(t, consumer.StartAt(at), 2)
		f.runPinned(consumer.StartEarliest()) // the committed offset counts, not the option
		f.handledOnce(young)
		for _, r := range old {
			f.unhandled(t, r)
		}
	},
	"StartAt in the future begins at the end": func(t *testing.T, f *fixture) {
		before := f.Produce(f.pinned("before", time.Time{}))[0]
		f.startPinned(t, consumer.StartAt(time.Now().Add(time.Hour)), 1)
		f.runPinned(consumer.StartEarliest())
		f.Handled(f.Produce(f.pinned("after", time.Time{}))[0], 1)
		f.unhandled(t, before)
	},
	"StartLatest begins partitions that are added at their start": func(t *testing.T, f *fixture) {
		cl := f.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(100*time.Millisecond))
		defer cl.Close()
		for _, running := range []bool{true, false} {
			cfg := f.config(ok)
			cfg.Start = consumer.StartLatest()
			cfg.Kafka = []kgo.Opt{kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100 * time.Millisecond)}
			c := f.Run(cfg)
			if !running {
				stop(t, c)
			}
			n := len(f.partitions(t))
			f.admin(t, func(ctx context.Context, admin *kadm.Client) error {
				grown, err := admin.UpdatePartitions(ctx, n+1, f.topic)
				return errors.Join(err, grown.Error())
			})
			eventually(t, "the topic grows", func() bool { return len(f.partitions(t)) == n+1 })
			added := &kgo.Record{Topic: f.topic, Partition: int32(n), Value: []byte("x")}
			eventually(t, "the new partition takes a record", func() bool {
				cl.ForceMetadataRefresh()
				return cl.ProduceSync(t.Context(), added).FirstErr() == nil
			})
			if !running {
				c = f.Run(cfg)
			}
			f.Handled(added, 1)
			stop(t, c)
		}
	},
	"retry topics begin at their start whatever the source's start": func(t *testing.T, f *fixture) {
		cfg := f.config(ok)
		c := f.Run(cfg)
		stop(t, c) // the siblings exist now
		m := f.copyOf(4711, 1, time.Now())
		m.Group = f.group + "-new"
		f.Produce(&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Value: []byte("x"), Headers: m.Append(nil)})
		cfg.Group, cfg.Start = m.Group, consumer.StartLatest()
		f.Run(cfg)
		f.Handled(&kgo.Record{Topic: f.topic, Partition: 1, Offset: 4711}, 1)
	},
}

// startPinned runs a consumer with the start option until its start is committed, before any record
// finished.
func (f *fixture) startPinned(t *testing.T, start consumer.Start, want int64) {
	t.Helper()
	cfg := f.config(func(ctx context.Context, _ *kgo.Record) error {
		<-ctx.Done() // no record finishes, so only the start is committed
		return ctx.Err()
	})
	cfg.Start, cfg.DrainTimeout = start, 10*time.Millisecond
	c := f.Run(cfg)
	if got := f.committedNow(t, f.group, f.topic, 1); got != want {
		t.Errorf("%d is committed when the consumer is ready, want its start, %d", got, want)
	}
	for _, tier := range []time.Duration{tier1, tier2} {
		if got := f.committedNow(t, f.group, f.tierTopic(tier), 1); got != 0 {
			t.Errorf("%d is committed on %s when the consumer is ready, want 0", got, f.tierTopic(tier))
		}
	}
	stop(t, c)
	if got := f.committedNow(t, f.group, f.topic, 1); got != want {
		t.Errorf("%d is committed at the end, want the start still, %d", got, want)
	}
}

// runPinned runs a consumer with the start option that handles all records.
func (f *fixture) runPinned(start consumer.Start) {
	cfg := f.config(ok)
	cfg.Start = start
	f.Run(cfg)
}
