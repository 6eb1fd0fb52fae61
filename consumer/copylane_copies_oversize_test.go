package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
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
	clients "github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/reserved"
)

// oversizeConfig retries a record once whose value begins with "busy", and fails a record
// terminally whose value begins with "bad". Both errors are long.
func oversizeConfig() consumer.Config {
	cfg := config(func(_ context.Context, r *kgo.Record) error {
		switch {
		case bytes.HasPrefix(r.Value, []byte("busy")):
			return classify.As(classify.Retryable(errors.New(prose(1000))), "busy")
		case bytes.HasPrefix(r.Value, []byte("bad")):
			return classify.As(classify.Terminal(errors.New(prose(1000))), "bad")
		}
		return nil
	})
	cfg.Policy.Tiers = []time.Duration{tier1}
	return cfg
}

// Trap 21: with its headers a record is too large for its dead-letter topic, and is lost or sent
// for ever.
func TestLane_LargeCopyOmitsNoMoreThanItHasTo(t *testing.T) {
	const value = 10_000 // with 1,000 bytes of message and some 400 of other headers
	type want struct {
		reason         headers.Reason
		message, value bool
	}
	type row struct {
		what      string
		tier, dlq int
		parked    *want
		letter    want
	}
	each(t, cases.Cross(map[string]row{
		"it fits":                                 {"busy", unlimited, unlimited, &want{"", true, true}, want{headers.ReasonExhausted, true, true}},
		"shrunk into the tier":                    {"busy", 11_000, unlimited, &want{"", false, true}, want{headers.ReasonExhausted, true, true}},
		"too large for the tier":                  {"busy", 9_000, unlimited, nil, want{headers.ReasonTooLarge, true, true}},
		"too large for the tier, shrunk":          {"busy", 9_000, 11_000, nil, want{headers.ReasonTooLarge, false, true}},
		"too large for both":                      {"busy", 9_000, 9_000, nil, want{headers.ReasonTooLarge, true, false}},
		"too large for both, hardly any room":     {"busy", 9_000, 1_000, nil, want{headers.ReasonTooLarge, false, false}},
		"shrunk into the dead-letter topic":       {"bad", unlimited, 11_000, nil, want{headers.ReasonTerminal, false, true}},
		"too large for the dead-letter topic":     {"bad", unlimited, 9_000, nil, want{headers.ReasonTerminal, true, false}},
		"the same, and hardly any room there":     {"bad", unlimited, 1_000, nil, want{headers.ReasonTerminal, false, false}},
		"it outgrows the DLQ, not the retry tier": {"busy", unlimited, 9_000, &want{"", true, true}, want{headers.ReasonExhausted, true, false}},
	}, map[string]bool{"limits known": true, "limits not known": false}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[row, bool]) {
		tt, known := c.A, c.B
		tier, dlq := tt.tier, tt.dlq
		if !known {
			tier, dlq = unlimited, unlimited
		}
		makeSiblings(t, k, tier, dlq)
		running := k.Run(oversizeConfig())
		if !known {
			limit(t, k, "orders.retry.300ms", tt.tier)
			limit(t, k, "orders.dlq", tt.dlq)
		}
		sent := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Observe: true, Count: -1})
		user := []kgo.RecordHeader{{Key: "mine", Value: []byte("1")}, {Key: "traceparent", Value: []byte("00-1-2-3")}}
		r := k.Produce(&kgo.Record{
			Topic: "orders", Partition: 1, Key: []byte("k"), Value: append([]byte(tt.what), noise(value)...), Headers: user,
		})[0]
		if tt.parked != nil {
			m := k.Parked(r, tier1, "busy")
			if (m.Message != "") != tt.parked.message || (len(m.History) > 0) != tt.parked.message || m.Attempts != 1 {
				t.Errorf("the copy in the tier says %+v, want its message: %v", m, tt.parked.message)
			}
		}
		k.DeadLettered(r, tt.letter.reason)
		all := content(t, k, "orders.dlq")
		if len(all) != 1 {
			t.Fatalf("%d dead letters, want 1", len(all))
		}
		got := all[0]
		m, err := headers.Parse(got.Headers)
		if err != nil || m.Reason != tt.letter.reason || (m.Message != "") != tt.letter.message || m.ValueOmitted == tt.letter.value {
			t.Errorf("the letter says %+v, %v; want %+v", m, err, tt.letter)
		}
		if tt.letter.value != bytes.Equal(got.Value, r.Value) || !tt.letter.value && got.Value != nil {
			t.Errorf("the letter's value has %d bytes of %d, want them: %v", len(got.Value), len(r.Value), tt.letter.value)
		}
		if h := headers.Strip(got.Headers); string(got.Key) != "k" || fmt.Sprint(h) != fmt.Sprint(user) || got.Partition != 1 {
			t.Errorf("key %q, headers %v, partition %d; want those of the record", got.Key, h, got.Partition)
		}
		if m.Class != tt.what || m.Original.Offset != r.Offset || m.Group != "billing" || m.NotBefore != (time.Time{}) {
			t.Errorf("the letter says %+v", m)
		}
		k.Conserved()
		committed(t, k, "orders", 1, r.Offset+1)
		time.Sleep(time.Minute)
		if n := sent.Hits(); n > 6 {
			t.Errorf("%d tries to write one dead letter, want at most shared, alone, by the best codec, shrunk, without value, neither", n)
		}
		h := running.Health()
		if lane := h.Lanes[1]; lane.State != consumer.StateRunning || h.OK != tt.letter.value || lane.Omitted > 1 || (lane.Omitted == 0) != tt.letter.value ||
			strings.Contains(lane.Why, "raise its max.message.bytes") == tt.letter.value || lane.Forwards != 0 {
			t.Errorf("health is OK: %v, %+v; want OK: %v, and if not what to raise", h.OK, lane, tt.letter.value)
		}
	})
}

// The producer's codec makes little of a record that the ordinary client's makes too much of. It
// had no retry, and its letter had no value. The producer may have used the best level of it, too.
func TestLane_CopyFitsWhereItsRecordDid(t *testing.T) {
	type row struct {
		codec kgo.Opt
		value []byte
		limit int
	}
	each(t, map[string]row{
		"strong": {clients.Strongest(), fmt.Appendf(nil, "busy %x", noise(800_000)), 0},
		"best":   {clients.Tightest(), repeating(), 84_000},
	}, 2, func(t *testing.T, k *consumertest.Kafka, tt row) {
		c := k.Run(oversizeConfig())
		if tt.limit > 0 {
			for _, topic := range []string{"orders", "orders.retry.300ms", "orders.dlq"} {
				limit(t, k, topic, tt.limit)
			}
		}
		cl, err := kgo.NewClient(append(k.Opts(), clients.LargeBatches(), tt.codec)...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		r := &kgo.Record{Topic: "orders", Value: tt.value}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		k.Parked(r, tier1, "busy")
		k.DeadLettered(r, headers.ReasonExhausted)
		for _, got := range content(t, k, "orders.dlq") {
			if m, err := headers.Parse(got.Headers); err != nil || m.ValueOmitted || !bytes.Equal(got.Value, r.Value) {
				t.Errorf("the letter has %d bytes of %d, %v", len(got.Value), len(r.Value), err)
			}
		}
		isOK(t, c)
	})
}

// repeating returns JSON with few words, many numbers, and a large part that comes twice. zstd
// makes less of it than gzip: its best level 81 kB, the level below 88 kB.
func repeating() []byte {
	from := []string{"alpha", "beta", "customer", "order", "shipped", "returned", "address", "street", "number", "total", "currency"}
	rnd, b := rand.New(rand.NewPCG(1, 2)), append([]byte("busy "), noise(40_000)...)
	for len(b) < 240_000 {
		w := func() string { return from[rnd.IntN(len(from))] }
		b = fmt.Appendf(b, `{"%s":"%s %s","%s":%d},`, w(), w(), w(), w(), rnd.IntN(100_000))
	}
	return append(b, noise(40_000)...)
}

// kgo fails all that it has for a partition when one batch is refused.
func TestLane_CopiesBesideALargeOneGoOnWhole(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, unlimited, unlimited)
		cfg := oversizeConfig()
		cfg.Order, cfg.Concurrency = consumer.OrderNone, 1000
		cfg.Kafka = []kgo.Opt{kgo.ProducerLinger(50 * time.Millisecond)} // they meet in a batch
		c := k.Run(cfg)
		limit(t, k, "orders.retry.300ms", 9_000)
		refused := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.300ms", Observe: true, Count: -1})
		var all []*kgo.Record
		for i := range 8 { // as many as a lane sends before one is acknowledged
			value := fmt.Append([]byte("busy"), i)
			if i == 3 {
				value = append(value, noise(10_000)...)
			}
			all = append(all, &kgo.Record{Topic: "orders", Partition: 1, Value: value})
		}
		k.Produce(all...)
		for i, r := range all {
			if i == 3 {
				k.DeadLettered(r, headers.ReasonTooLarge)
				continue
			}
			if m := k.Parked(r, tier1, "busy"); len(m.Message) != 1000 || len(m.History) != 1 {
				t.Errorf("copy %d shared a batch, and lost of its message or history: %+v", i, m)
			}
			k.DeadLettered(r, headers.ReasonExhausted)
		}
		k.Conserved()
		holds(t, k, "orders.retry.300ms", 7)
		if n := refused.Hits(); n < 9 {
			t.Errorf("%d requests to the tier, want one for each of 8 copies alone: nothing was refused together", n)
		}
		isOK(t, c)
	})
}

// A batch may have as many bytes as its topic accepts, and kgo counts them before compression.
func TestLane_NoLocalLimitRefusesWhatTheBrokerTakes(t *testing.T) {
	type row struct {
		size int
		opts []kgo.Opt
	}
	each(t, map[string]row{
		"by default": {12 << 20, nil},
		"the user's": {12 << 20, []kgo.Opt{kgo.ProducerBatchMaxBytes(2000)}},
		// over kgo's default, within the topic's
		"none compressed": {unlimited - 3000, []kgo.Opt{kgo.ProducerBatchCompression(kgo.NoCompression())}},
	}, 2, func(t *testing.T, k *consumertest.Kafka, tt row) {
		makeSiblings(t, k, unlimited, unlimited)
		cfg := oversizeConfig()
		cfg.Kafka = tt.opts
		c := k.Run(cfg)
		large := append([]byte("busy"), make([]byte, tt.size)...)
		cl := client(t, k, kgo.ProducerBatchMaxBytes(64<<20), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		r := &kgo.Record{Topic: "orders", Partition: 1, Value: large}
		if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if m := k.Parked(r, tier1, "busy"); m.Message == "" {
			t.Error("the copy lost its message")
		}
		k.DeadLettered(r, headers.ReasonExhausted)
		for _, topic := range []string{"orders.retry.300ms", "orders.dlq"} {
			if all := content(t, k, topic); len(all) != 1 || !bytes.Equal(all[0].Value, large) {
				t.Errorf("%s: %d copies, want one with the value", topic, len(all))
			}
		}
		isOK(t, c)
	})
}

func TestLane_OnOversizeDiscardReportsTheRecord(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, 9_000, 9_000)
		cfg := oversizeConfig()
		cfg.Policy.OnOversize = consumer.Discard
		hook := &discards{}
		cfg.Hooks = []consumer.Hook{hook}
		c := k.Run(cfg)
		large := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: append([]byte("busy"), noise(10_000)...)})[0]
		behind := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("fine")})[0]
		eventually(t, "the hook is called", func() bool { return len(hook.all()) == 1 })
		e := hook.all()[0]
		if e.Meta.Reason != headers.ReasonTooLarge || e.Record.Offset != large.Offset || e.Record.Topic != "orders" || !bytes.Equal(e.Record.Value, large.Value) || len(e.Meta.Message) != 1000 {
			t.Errorf("discarded %+v", e)
		}
		k.Handled(behind, 1)
		committed(t, k, "orders", 1, behind.Offset+1)
		if n := len(content(t, k, "orders.dlq")); n != 0 || len(hook.all()) != 1 {
			t.Errorf("%d dead letters, %d calls of the hook; want none, and once", n, len(hook.all()))
		}
		if h := c.Health(); !h.OK || h.Lanes[1].Forwards != 0 {
			t.Errorf("health is %+v, want OK", h)
		}
	})
}

func TestLane_OnOversizeStopHaltsOnTheRecord(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, 9_000, 9_000)
		cfg := oversizeConfig()
		cfg.Policy.OnOversize = consumer.Stop
		handled := watch(&cfg)
		c := k.Run(cfg)
		large := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: append([]byte("busy"), noise(10_000)...)})[0]
		eventually(t, "the lane halts", func() bool { return c.Health().Lanes[1].State == consumer.StateStopped })
		behind := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("fine")})[0]
		other := k.Produce(&kgo.Record{Topic: "orders", Key: keyOf(0), Value: []byte("fine")})[0]
		k.Handled(other, 1)
		time.Sleep(time.Minute)
		if handled(behind) {
			t.Errorf("record %d was handled", behind.Offset)
		}
		h := c.Health()
		if lane := h.Lanes[1]; h.OK || h.Lanes[0].State != consumer.StateRunning || !strings.Contains(lane.Why, "offset 0") || !strings.Contains(lane.Why, "orders.dlq: raise its max.message.bytes") || lane.Forwards != 0 {
			t.Errorf("health is %+v, want lane 1 halted on offset 0 and lane 0 running", h)
		}
		holds(t, k, "orders.dlq", 0)
		stop(t, c)
		if got := k.Cluster.GroupInfo("billing").Commits["orders"][1].Offset; got != large.Offset {
			t.Errorf("%d is committed, want the record that the lane halted on, %d", got, large.Offset)
		}
		limit(t, k, "orders.dlq", unlimited)
		k.Run(cfg)
		k.DeadLettered(large, headers.ReasonTooLarge)
		k.Handled(behind, 1)
		k.Conserved()
	})
}

func TestLane_LargeMalformedRecordOmitsItsValue(t *testing.T) {
	type row struct {
		how   consumer.Disposition
		limit int
	}
	each(t, map[string]row{
		"dead-lettered":  {consumer.DeadLetter, 9_000},
		"it fits shrunk": {consumer.DeadLetter, 10_400},
		"discarded":      {consumer.Discard, 9_000},
		"stopped":        {consumer.Stop, 9_000},
	}, 2, func(t *testing.T, k *consumertest.Kafka, tt row) {
		makeSiblings(t, k, unlimited, tt.limit)
		cfg := oversizeConfig()
		cfg.Policy.OnOversize = tt.how
		c := k.Run(cfg)
		h := []kgo.RecordHeader{{Key: headers.Attempts, Value: []byte("-1")}, {Key: "mine"}, {Key: reserved.History.String(), Value: []byte(prose(400))}}
		k.Produce(&kgo.Record{Topic: "orders.retry.300ms", Partition: 1, Key: []byte("k"), Value: noise(10_000), Headers: h})
		if tt.how == consumer.Stop {
			eventually(t, "the lane halts", func() bool { return c.Health().Lanes[1].State == consumer.StateStopped })
			if got := k.Cluster.GroupInfo("billing").Commits["orders.retry.300ms"][1].Offset; got != 0 {
				t.Errorf("%d is committed, want 0", got)
			}
			return
		}
		committed(t, k, "orders.retry.300ms", 1, 1)
		all := content(t, k, "orders.dlq")
		if tt.how == consumer.Discard {
			if len(all) != 0 {
				t.Errorf("%d dead letters, want none", len(all))
			}
			return
		}
		if len(all) != 1 {
			t.Fatalf("%d dead letters, want 1", len(all))
		}
		shrunk := tt.limit > 10_000
		m, err := headers.Parse(all[0].Headers)
		if err == nil || m.Reason != headers.ReasonMalformed || m.ValueOmitted == shrunk || (len(all[0].Value) > 0) != shrunk || string(all[0].Key) != "k" {
			t.Errorf("the letter says %+v, %v", m, err)
		}
		if !shrunk && (!strings.Contains(m.Message, "orders.retry.300ms/1/0") || !strings.Contains(m.Message, headers.Attempts)) {
			t.Errorf("message %q, want where the value is and what is wrong", m.Message)
		}
		if h := c.Health(); h.OK != shrunk || (h.Lanes[1].Omitted == 1) == shrunk {
			t.Errorf("health is %+v", h)
		}
	})
}

// A lane is revoked while a copy waits for its turn alone, or is sent alone. It leaves the record
// to the next owner.
func TestLane_RevokedOverLargeCopiesLosesNone(t *testing.T) {
	each(t, map[string]kfake.Fault{
		"no leader":      {Err: kerr.NotLeaderForPartition},
		"not authorized": {Err: kerr.TopicAuthorizationFailed},
		"no answer yet":  {Err: kerr.NotEnoughReplicas},
	}, 2, func(t *testing.T, k *consumertest.Kafka, fault kfake.Fault) {
		makeSiblings(t, k, 9_000, unlimited)
		cfg := oversizeConfig()
		cfg.Order, cfg.Concurrency, cfg.DrainTimeout = consumer.OrderNone, 100, 3*time.Second
		first := k.Run(cfg)
		fault.Keys, fault.Topic, fault.Partitions, fault.Count = []kmsg.Key{kmsg.Produce}, "orders.dlq", []int32{1}, -1
		handle := k.Cluster.Fault(fault)
		// as many as a lane sends before one is acknowledged
		all := k.Produce(onPartition(1, "busy"+string(noise(10_000)), 8)...)
		hits(t, handle, 3)
		eventually(t, "the copies wait", func() bool { return first.Health().Lanes[1].Forwards == len(all) })
		stop(t, first)
		holds(t, k, "orders.dlq", 0)
		second := k.Run(cfg)
		time.Sleep(time.Second)
		handle.Remove()
		deadLettered(k, all, headers.ReasonTooLarge)
		k.Conserved()
		holds(t, k, "orders.dlq", len(all))
		if h := second.Health(); !h.OK || h.Lanes[1].Forwards != 0 {
			t.Errorf("health is %+v, want OK", h)
		}
	})
}

// The copies of a storm of large records go one at a time, within the lane's bounds, and other
// lanes do not wait for them.
func TestLane_LargeCopiesHoldUpNoOtherLane(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, 9_000, unlimited)
		cfg := oversizeConfig()
		cfg.MaxInFlight = 6
		c := k.Run(cfg)
		noLeader := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Partitions: []int32{1}, Count: -1, Err: kerr.NotLeaderForPartition})
		var most atomic.Int64
		large := k.Produce(onPartition(1, "busy"+string(noise(10_000)), 60)...)
		for range 30 {
			time.Sleep(time.Second)
			most.Store(max(most.Load(), int64(c.Health().Lanes[1].Forwards)))
		}
		if n := most.Load(); n < 6 || n > 7 {
			t.Errorf("%d copies on their way, want the bound, 6", n)
		}
		if l := c.Health().Lanes[1]; l.State != consumer.StateBlocked {
			t.Errorf("lane 1 is %+v, want it blocked: nothing is acknowledged", l)
		}
		other := k.Produce(&kgo.Record{Topic: "orders", Key: keyOf(0), Value: append([]byte("busy"), noise(10_000)...)})[0]
		k.DeadLettered(other, headers.ReasonTooLarge)
		noLeader.Remove()
		deadLettered(k, large, headers.ReasonTooLarge)
		k.Conserved()
		isOK(t, c)
	})
}

// A topic with a lower limit would refuse every batch of kgo's default size, and its copies would
// go one at a time.
func TestLane_BatchIsNoLargerThanItsTopicTakes(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		makeSiblings(t, k, 9_000, unlimited)
		cfg := oversizeConfig()
		cfg.Order, cfg.Concurrency = consumer.OrderNone, 1000
		cfg.Kafka = []kgo.Opt{kgo.ProducerLinger(50 * time.Millisecond)}
		k.Run(cfg)
		requests := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.300ms", Observe: true, Count: -1})
		for _, r := range k.Produce(onPartition(1, "busy", 200)...) {
			k.Parked(r, tier1, "busy")
		}
		if n := requests.Hits(); n < 20 || n > 60 {
			t.Errorf("%d requests for 200 copies of which five fit into a batch, want some 40", n)
		}
		k.Conserved()
	})
}
