package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

var recordsAttr = regexp.MustCompile(` records=(\d+)`)

// records adds up the numbers of records in all lines with a text, and reason if it is not empty.
func (l *lines) records(text, reason string) (sum int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if n := recordsAttr.FindStringSubmatch(line); n != nil && strings.Contains(line, text) && strings.Contains(line, reason) {
			records, _ := strconv.Atoi(n[1])
			sum += records
		}
	}
	return sum
}

// 5,000 dead letters left one line, which counted one: the number of the others came only with a
// later dead letter, and there was none.
func TestRecordLog_TellsEveryDeadLetter(t *testing.T) {
	cases.Skip(t)
	for name, c := range map[string]struct {
		class func(*kgo.Record) string
		stop  bool // as soon as the last one is in the log
		lines int
	}{
		// the first, two totals at most, and the end
		"a storm":             {class: func(*kgo.Record) string { return "sku" }, lines: 4},
		"two classes":         {class: func(r *kgo.Record) string { return fmt.Sprint("sku-", r.Offset%2) }, lines: 8},
		"a class each":        {class: func(r *kgo.Record) string { return fmt.Sprint("order-", r.Offset) }, lines: 104},
		"it stops meanwhile":  {class: func(*kgo.Record) string { return "sku" }, stop: true, lines: 3},
		"many, and it stops":  {class: func(r *kgo.Record) string { return fmt.Sprint("order-", r.Offset) }, stop: true, lines: 104},
		"all, at debug level": {class: func(*kgo.Record) string { return "sku" }, lines: 4},
	} {
		t.Run(name, func(t *testing.T) {
			onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
				cfg := config(func(_ context.Context, r *kgo.Record) error {
					return classify.As(classify.Terminal(errors.New("unknown\nSKU")), c.class(r))
				})
				log := logged(&cfg)
				if name == "all, at debug level" {
					cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				}
				consumer := k.Run(cfg)
				inBatches(k, 50, 100, 100*time.Millisecond)
				eventually(t, "all are dead letters", func() bool { return endOf(k, "orders.dlq") == 5000 })
				if !c.stop {
					time.Sleep(time.Minute) // and nothing comes that could bring the rest with it
					if n := log.records("to the dead-letter topic", ""); n != 5000 {
						t.Errorf("while it runs, the lines count %d dead letters, want 5,000", n)
					}
					log.has(t, 1, "level=INFO", `msg="siding: the last minute"`, "handled=0 copies_parked=0 dead_lettered=5000 discarded=0")
				}
				stop(t, consumer)
				if n := log.records("to the dead-letter topic", ""); n != 5000 {
					t.Errorf("the lines count %d dead letters, want 5,000", n)
				}
				if n := log.with("to the dead-letter topic") - log.with("to the dead-letter topic", "level=DEBUG"); n > c.lines {
					t.Errorf("%d lines, want %d at most", n, c.lines)
				}
				log.has(t, 0, "unknown\\n")
				log.has(t, 1, "level=INFO", `msg="siding: stopped"`, "handled=0 copies_parked=0 dead_lettered=5000 discarded=0")
			})
		})
	}
}

// What became of all records is in the log: of those that were parked on the way, too.
func TestRecordLog_TellsWhatBecameOfRecords(t *testing.T) {
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			switch first := consumer.DeliveryOf(ctx, r).Attempt == 1; {
			case r.Offset%10 == 3 && first:
				return classify.As(classify.Retryable(errBusy), "busy")
			case r.Offset%10 == 5:
				return classify.Discard(errBusy)
			case r.Offset%10 == 7:
				return classify.Terminal(errBusy)
			}
			return nil
		})
		cfg.Order = order
		log := logged(&cfg)
		c := k.Run(cfg)
		for p := range int32(2) {
			k.Produce(onPartition(int(p), "v", 100)...)
		}
		eventually(t, "all are finished", func() bool { return log.records("to a retry topic", "") == 20 })
		k.Conserved()
		stop(t, c)
		log.has(t, 1, `msg="siding: stopped"`, "handled=160 copies_parked=20 dead_lettered=20 discarded=20")
		for text, want := range map[string]int{"to the dead-letter topic": 20, "discarded": 20, "to a retry topic": 20} {
			if n := log.records("siding: record", text); n != want {
				t.Errorf("the lines count %d records %s, want %d", n, text, want)
			}
		}
		log.has(t, 1, `level=INFO msg="siding: record goes to a retry topic" group=billing topic=orders`, "attempts=1 tier=300ms class=busy error=", "records=1")
	})
}

// The last line counted a record twice whose copy was too large: as parked and as a dead letter, or
// as a dead letter and as discarded.
func TestRecordLog_CountsALargeCopyOnce(t *testing.T) {
	cases.Skip(t)
	type row struct {
		how    consumer.Disposition
		limit  int // of the dead-letter topic
		value  string
		counts string
	}
	each(t, map[string]row{
		"its tier refuses it":        {consumer.DeadLetter, unlimited, "busy", "copies_parked=0 dead_lettered=1 discarded=0"},
		"its letter has no value":    {consumer.DeadLetter, 9_000, "busy", "copies_parked=0 dead_lettered=1 discarded=0"},
		"its letter is refused":      {consumer.Discard, 9_000, "bad", "copies_parked=0 dead_lettered=0 discarded=1"},
		"both refuse it":             {consumer.Discard, 9_000, "busy", "copies_parked=0 dead_lettered=0 discarded=1"},
		"its lane halts":             {consumer.Stop, 9_000, "bad", "copies_parked=0 dead_lettered=0 discarded=0"},
		"both refuse it, lane halts": {consumer.Stop, 9_000, "busy", "copies_parked=0 dead_lettered=0 discarded=0"},
	}, 2, func(t *testing.T, k *consumertest.Kafka, tt row) {
		makeSiblings(t, k, 9_000, tt.limit)
		cfg := oversizeConfig()
		cfg.Policy.OnOversize = tt.how
		log := logged(&cfg)
		c := k.Run(cfg)
		busy := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1, Topic: "orders.retry.300ms"})
		large := k.Produce(onPartition(1, tt.value+string(noise(10_000)), 1)...)[0]
		time.Sleep(90 * time.Second) // a minute has it as parked
		busy.Remove()
		if tt.how == consumer.Stop {
			eventually(t, "the lane halts", func() bool { return c.Health().Lanes[1].State == consumer.StateStopped })
		} else {
			k.Conserved()
			committed(t, k, "orders", 1, large.Offset+1)
		}
		time.Sleep(2 * time.Minute)
		log.has(t, 0, "=-1")
		stop(t, c)
		log.has(t, 1, `msg="siding: stopped"`, "handled=0 "+tt.counts)
		parked := log.records("siding: record goes to a retry topic", "")
		if tt.value == "busy" {
			parked-- // its copy was refused
		}
		discarded := log.records("siding: record discarded", "")
		dead := log.records("siding: record goes to the dead-letter topic", "")
		if got := fmt.Sprintf("copies_parked=%d dead_lettered=%d discarded=%d", parked, dead, discarded); got != tt.counts {
			t.Errorf("the lines add up to %s, want %s", got, tt.counts)
		}
	})
}

// A record that waits for long is written to its tier again, and that copy may be too large where
// the first one was not. The first one was parked.
func TestRecordLog_CountsACopyThatWasParked(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := oversizeConfig()
		cfg.Handler = func(context.Context, *kgo.Record) error { return classify.RetryAfter(errBusy, 3*time.Hour) }
		cfg.Policy.MaxRetryAfter = 3 * time.Hour
		cfg.Provision.TierRetention = 4 * time.Hour
		log := logged(&cfg)
		c := k.Run(cfg)
		large := k.Produce(onPartition(1, string(noise(10_000)), 1)...)[0]
		k.Parked(large, tier1, "")
		limit(t, k, "orders.retry.300ms", 9_000)
		k.Patience = 4 * time.Hour
		k.DeadLettered(large, headers.ReasonTooLarge)
		k.Conserved()
		stop(t, c)
		log.has(t, 1, `msg="siding: stopped"`, "handled=0 copies_parked=1 dead_lettered=1 discarded=0")
	})
}

// A line about 79 parked records named the tier of the last one, and half of them had gone to
// another.
func TestRecordLog_TellsTiersApart(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) })
		cfg.Policy.Tiers = []time.Duration{time.Second, 3 * time.Second}
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Produce(onPartition(0, "v", 40)...)
		eventually(t, "all are dead letters", func() bool { return endOf(k, "orders.dlq") == 40 })
		stop(t, c)
		for _, tier := range []string{" tier=1s ", " tier=3s "} {
			if n := log.records(tier, ""); n != 40 {
				t.Errorf("the lines with%stell of %d parked records, want 40", tier, n)
			}
		}
	})
}

// A record that the handler discarded had reason=terminal, as a dead letter has.
func TestRecordLog_TellsWhoDiscards(t *testing.T) {
	each(t, map[string]bool{"handler": true, "policy": false}, 1, func(t *testing.T, k *consumertest.Kafka, asks bool) {
		cfg := config(func(context.Context, *kgo.Record) error {
			if asks {
				return classify.Discard(errBusy)
			}
			return classify.Terminal(errBusy)
		})
		cfg.Policy.OnTerminal = consumer.Discard
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Produce(onPartition(0, "v", 1)...)
		eventually(t, "it is discarded", func() bool { return log.with(`msg="siding: record discarded"`) == 1 })
		stop(t, c)
		if asks {
			log.has(t, 1, "record discarded", "attempts=1 by=handler class=")
		} else {
			log.has(t, 1, "record discarded", "attempts=1 by=policy reason=terminal class=")
		}
	})
}

var overdueAttr = regexp.MustCompile(`handlers? ignores? (?:its|their) timeout.* handlers=(\d+)`)

// Of 64 handlers that ignored their timeout, the log named 5: it looked at one of a lane, twice a
// second.
func TestRecordLog_TellsEveryOverdueHandler(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const handlers = 64
		cfg := config(func(context.Context, *kgo.Record) error {
			time.Sleep(5 * time.Second) // ignores its context
			return nil
		})
		cfg.Order, cfg.Concurrency, cfg.Policy.HandlerTimeout = consumer.OrderNone, handlers, time.Second
		log := logged(&cfg)
		c := k.Run(cfg)
		handledOnce(k, k.Produce(many(handlers)...))
		stop(t, c)
		counted := 0
		for _, n := range overdueAttr.FindAllStringSubmatch(log.buf.String(), -1) {
			n, _ := strconv.Atoi(n[1])
			counted += n
		}
		if log.with("a handler ignores its timeout") == 0 || counted != handlers {
			t.Errorf("the log counts %d handlers that ignored their timeout, want %d", counted, handlers)
		}
	})
}
