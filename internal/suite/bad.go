package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// bad: what nobody should have sent, configured or left out.
var bad = map[string]func(*testing.T, *fixture){
	// Trap 13: a crafted or broken due time or attempts header. Delivered early it would run at once, believed it would wait for
	// ever; so it is neither.
	"broken headers on a retry topic are dead-lettered as found": func(t *testing.T, f *fixture) {
		now := time.Now()
		set := func(key, value string) func([]kgo.RecordHeader) []kgo.RecordHeader {
			return func(h []kgo.RecordHeader) []kgo.RecordHeader {
				return append(without(h, key), kgo.RecordHeader{Key: key, Value: []byte(value)})
			}
		}
		more := func(key, value string) func([]kgo.RecordHeader) []kgo.RecordHeader {
			return func(h []kgo.RecordHeader) []kgo.RecordHeader {
				return append(h, kgo.RecordHeader{Key: key, Value: []byte(value)})
			}
		}
		drop := func(key string) func([]kgo.RecordHeader) []kgo.RecordHeader {
			return func(h []kgo.RecordHeader) []kgo.RecordHeader { return without(h, key) }
		}
		broken := []struct {
			key    string // that the dead letter must name
			change func([]kgo.RecordHeader) []kgo.RecordHeader
		}{
			{headers.NotBefore, set(headers.NotBefore, fmt.Sprint(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMilli()))},
			{headers.NotBefore, set(headers.NotBefore, fmt.Sprint(now.Add(8*24*time.Hour).UnixMilli()))},
			{headers.NotBefore, set(headers.NotBefore, "tomorrow")},
			{headers.NotBefore, set(headers.NotBefore, "")},
			{headers.NotBefore, set(headers.NotBefore, "-1")},
			{headers.NotBefore, set(headers.NotBefore, "99999999999999999999999")},
			{headers.NotBefore, set(headers.NotBefore, "1e12")},
			{headers.NotBefore, drop(headers.NotBefore)},
			{headers.NotBefore, more(headers.NotBefore, fmt.Sprint(now.UnixMilli()))},
			{headers.Attempts, set(headers.Attempts, "-1")},
			{headers.Attempts, set(headers.Attempts, "1000001")},
			{headers.Attempts, set(headers.Attempts, "9223372036854775808")},
			{headers.Attempts, set(headers.Attempts, "many")},
			{headers.Attempts, set(headers.Attempts, "\xff\xfe")},
			{headers.Attempts, drop(headers.Attempts)},
			{headers.Attempts, more(headers.Attempts, "1")},
			{headers.Group, drop(headers.Group)},
			{headers.Group, set(headers.Group, "")},
			{headers.Group, set(headers.Group, "bill\xffing")},
			{headers.Group, more(headers.Group, f.group)},
			{headers.OriginalTopic, drop(headers.OriginalTopic)},
			{headers.OriginalTopic, set(headers.OriginalTopic, "no such topic")},
			{headers.OriginalPartition, set(headers.OriginalPartition, "4294967296")},
			{headers.OriginalOffset, set(headers.OriginalOffset, "-5")},
			{headers.ErrorClass, set(headers.ErrorClass, "two words")},
			{headers.History, set(headers.History, "1:busy")},
			{headers.Held, set(headers.Held, "yes")},
			{headers.RedriveID, more(headers.RedriveCount, "1")},
		}
		var runs atomic.Int32
		f.Run(f.config(func(context.Context, *kgo.Record) error {
			runs.Add(1)
			return nil
		}))
		at := time.UnixMilli(now.UnixMilli()).Add(-time.Hour)
		var copies []*kgo.Record
		for i, b := range broken {
			h := f.copyOf(int64(i), 1, now).Append([]kgo.RecordHeader{{Key: "mine", Value: []byte("1")}, {Key: "dlq-mine", Value: nil}, {Key: "mine", Value: []byte("2")}})
			copies = append(copies, &kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Key: fmt.Append(nil, "key-", i), Value: fmt.Append(nil, "value-", i), Timestamp: at, Headers: b.change(h)})
		}
		copies = append(copies,
			// Nothing of siding's at all, a null key, a null value.
			&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Headers: []kgo.RecordHeader{{Key: "mine"}}},
		)
		f.Produce(copies...)
		for i, want := range copies {
			got := f.find(t, f.topic+".dlq", func(r *kgo.Record) bool { return sameBytes(r.Key, want.Key) })
			if !sameBytes(got.Value, want.Value) || got.Partition != 1 {
				t.Errorf("broken record %d: value %q on partition %d; want %q on 1, as found", i, got.Value, got.Partition, want.Value)
			}
			replaced := []string{headers.FailureReason, headers.ErrorClass, headers.ErrorMessage, headers.FailedAt}
			if have, want := without(got.Headers, replaced...), without(want.Headers, replaced...); !sameHeaders(have, want) {
				t.Errorf("broken record %d: headers\n%q, want as found\n%q", i, have, want)
			}
			key := headers.OriginalTopic // that all of them are missing is said of the first
			if i < len(broken) {
				key = broken[i].key
			}
			if reason, class, message := value(got, headers.FailureReason), value(got, headers.ErrorClass), value(got, headers.ErrorMessage); reason != "malformed" || class != headers.ClassMalformed || !strings.Contains(message, key) {
				t.Errorf("broken record %d: reason %q, class %q, message %q; want malformed, and a message that names %s", i, reason, class, message, key)
			}
		}
		f.committed(t, f.tierTopic(tier1), 1, int64(len(copies)))
		if n := runs.Load(); n != 0 {
			t.Errorf("%d broken records were run", n)
		}
	},
	"a copy of another group is passed over and committed, not run": func(t *testing.T, f *fixture) {
		var runs atomic.Int32
		f.Run(f.config(func(context.Context, *kgo.Record) error {
			runs.Add(1)
			return nil
		}))
		foreign := f.copyOf(0, 1, time.Now())
		foreign.Group = "another"
		f.Produce(&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Value: []byte("x"), Headers: foreign.Append(nil)})
		f.committed(t, f.tierTopic(tier1), 1, 1)
		if n := runs.Load(); n != 0 {
			t.Errorf("another group's record was run %d times", n)
		}
		if n := f.count(t, f.topic+".dlq"); n != 0 {
			t.Errorf("%d dead letters, want none", n)
		}
	},
	"groups that share siblings handle their own failures only": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		attempts := map[string][]int{}
		handle := func(group string, fails int) consumer.Handler {
			return func(ctx context.Context, r *kgo.Record) error {
				n := consumer.FactsOf(ctx, r).Attempt
				mu.Lock()
				attempts[group] = append(attempts[group], n)
				mu.Unlock()
				if n <= fails {
					return classify.Retryable(errBusy)
				}
				return nil
			}
		}
		one, two := f.config(handle("one", 2)), f.config(handle("two", 1))
		two.Group = f.group + "-two"
		f.Run(one)
		f.Run(two)
		r := f.Produce(f.record("x"))[0]
		f.Handled(r, 2) // once by each group
		eventually(t, "each group has passed over the other's copies", func() bool {
			return f.committedNow(t, one.Group, f.tierTopic(tier1), r.Partition) == 2 && f.committedNow(t, two.Group, f.tierTopic(tier1), r.Partition) == 2 &&
				f.committedNow(t, one.Group, f.tierTopic(tier2), r.Partition) == 1 && f.committedNow(t, two.Group, f.tierTopic(tier2), r.Partition) == 1
		})
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(attempts), fmt.Sprint(map[string][]int{"one": {1, 2, 3}, "two": {1, 2}}); got != want {
			t.Errorf("attempts %s, want %s", got, want)
		}
	},
	"{group} in the naming keeps groups apart": func(t *testing.T, f *fixture) {
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.FactsOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return errors.New("no such SKU")
		})
		cfg.Naming = retrytopics.Naming{Retry: "{topic}.{group}.retry.{delay}", DLQ: "{topic}.{group}-dlq", Ledger: "{topic}.{group}-dlq-ledger"}
		f.Run(cfg)
		r := f.Produce(f.record("x"))[0]
		f.DeadLettered(r, headers.ReasonTerminal)
		if n := f.count(t, f.topic+"."+f.group+"-dlq"); n != 1 {
			t.Errorf("%d records in the group's own dead-letter topic, want 1", n)
		}
		if n := f.count(t, f.topic+"."+f.group+".retry.300ms"); n != 1 {
			t.Errorf("%d records in the group's own tier, want 1", n)
		}
		f.Conserved()
	},
	// Trap 19: a dead letter that is copied back with its headers would get no retries.
	"reserved headers on a source record steer nothing and are taken off": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		seen := map[int][]kgo.RecordHeader{}
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.FactsOf(ctx, r)
			mu.Lock()
			seen[facts.Attempt] = r.Headers
			mu.Unlock()
			if facts.RedriveID != "" || facts.Original.Topic != f.topic || facts.Original.Partition != 1 {
				t.Errorf("facts %+v come from a header", facts)
			}
			if facts.Attempt < 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		letter := headers.Meta{
			Original: headers.Position{Topic: "elsewhere", Partition: 9, Offset: 99}, Group: "another", Attempts: 77, Class: "old", Message: "old",
			FirstFailedAt: time.UnixMilli(1), FailedAt: time.UnixMilli(2), NotBefore: time.Now().Add(time.Hour), Hops: 50,
			History: []headers.Attempt{{Number: 1, Class: "old", At: time.UnixMilli(1)}},
			Redrive: headers.Redrive{ID: "forged", Count: 2, From: headers.Position{Topic: "elsewhere.dlq", Offset: 5}},
		}
		user := []kgo.RecordHeader{{Key: "dlq-mine", Value: []byte("1")}, {Key: "a", Value: []byte{0xff}}, {Key: "dlq-mine", Value: []byte("2")}, {Key: "dlq", Value: nil}}
		h := letter.Append(user)
		h = append(h, kgo.RecordHeader{Key: headers.Attempts, Value: []byte("garbage")}, kgo.RecordHeader{Key: headers.FailureReason, Value: []byte("terminal")})
		r := f.Produce(&kgo.Record{Topic: f.topic, Partition: 1, Key: []byte("k"), Value: []byte("x"), Headers: h})[0]
		m := f.Parked(r, tier1, "")
		if m.Attempts != 1 || m.Hops != 1 || len(m.History) != 1 || m.Redrive.ID != "" || m.Group != f.group || m.FirstFailedAt.UnixMilli() < 1000 {
			t.Errorf("the copy says %+v; want the first failure of this record", m)
		}
		f.Handled(r, 1)
		mu.Lock()
		defer mu.Unlock()
		for n := 1; n <= 3; n++ {
			if !sameHeaders(seen[n], user) {
				t.Errorf("attempt %d saw headers %q, want the user's alone: %q", n, seen[n], user)
			}
		}
		f.Conserved()
	},
	"redrive headers count on a source only from its own dead-letter topic": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		ids := map[string]string{}
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			ids[string(r.Value)] = consumer.FactsOf(ctx, r).RedriveID
			return classify.Retryable(errBusy)
		}))
		from := func(value, topic string) *kgo.Record {
			re := headers.Redrive{ID: "run-1", Count: 2, From: headers.Position{Topic: topic, Partition: 1, Offset: 5}}
			return &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte(value), Headers: re.Append(nil)}
		}
		half := from("half", f.topic+".dlq")
		half.Headers = half.Headers[:2]
		twice := from("twice", f.topic+".dlq")
		twice.Headers = append(twice.Headers, twice.Headers[0])
		records := f.Produce(from("own", f.topic+".dlq"), from("foreign", "payments.dlq"), half, twice)
		for _, r := range records {
			want := headers.Redrive{}
			if string(r.Value) == "own" {
				want = headers.Redrive{ID: "run-1", Count: 2, From: headers.Position{Topic: f.topic + ".dlq", Partition: 1, Offset: 5}}
			}
			if m := f.DeadLettered(r, headers.ReasonExhausted); m.Redrive != want {
				t.Errorf("%s: the dead letter says redrive %+v, want %+v", r.Value, m.Redrive, want)
			}
			mu.Lock()
			if got := ids[string(r.Value)]; got != want.ID {
				t.Errorf("%s: the handler is told of redrive %q, want %q", r.Value, got, want.ID)
			}
			mu.Unlock()
		}
		f.Conserved()
	},
	"a record with no attempts in a tier runs as its first": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		var seen []consumer.Facts
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, consumer.FactsOf(ctx, r))
			return classify.Retryable(errBusy)
		}))
		original := &kgo.Record{Topic: f.topic, Partition: 1, Offset: 4711}
		redriven := headers.Meta{
			Original: headers.Position{Topic: f.topic, Partition: 1, Offset: 4711}, Group: f.group, NotBefore: time.Now(),
			Redrive: headers.Redrive{ID: "run-1", Count: 1, From: headers.Position{Topic: f.topic + ".dlq", Partition: 1}},
		}
		f.Produce(&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Value: []byte("x"), Headers: redriven.Append(nil)})
		m := f.DeadLettered(original, headers.ReasonExhausted)
		mu.Lock()
		defer mu.Unlock()
		for i, facts := range seen {
			if facts.Attempt != i+1 || facts.RedriveID != "run-1" || facts.IdempotencyKey() != fmt.Sprintf("%s/%s/1/4711", f.group, f.topic) {
				t.Errorf("delivery %d has facts %+v", i+1, facts)
			}
		}
		if len(seen) != 3 || m.Attempts != 3 || m.Redrive.ID != "run-1" || m.FirstFailedAt.IsZero() {
			t.Errorf("%d deliveries, and the dead letter says %+v; want 3, redrive run-1 kept", len(seen), m)
		}
	},
	// Trap 14: fewer attempts or tiers in the new configuration than records in flight assume.
	"a restart with fewer attempts ends the records in flight": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.MaxAttempts = 50
		c := f.Run(cfg)
		records := f.Produce(f.many(20)...)
		f.Parked(records[7], tier2, "")
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		cfg.Policy.MaxAttempts = 2
		f.Run(cfg)
		for _, r := range records {
			if m := f.DeadLettered(r, headers.ReasonExhausted); m.Attempts < 2 {
				t.Errorf("exhausted after %d attempts, want 2 at least", m.Attempts)
			}
		}
		f.Conserved()
	},
	"a restart with more tiers takes records in flight along": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.Tiers = []time.Duration{tier2}
		c := f.Run(cfg)
		records := f.Produce(f.many(20)...)
		f.Parked(records[7], tier2, "")
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		// A tier in front of the one that holds them, and one behind it.
		cfg.Policy.Tiers = []time.Duration{tier1, tier2, 2 * tier2}
		f.Run(cfg)
		for _, r := range records {
			f.DeadLettered(r, headers.ReasonExhausted)
		}
		if m := f.Parked(records[7], 2*tier2, ""); m.Attempts != 2 {
			t.Errorf("the tier behind was reached after %d attempts, want 2: records in flight go on, not back", m.Attempts)
		}
		f.Conserved()
	},
	"a restart from tiers in another order of delays loses nothing": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		c := f.Run(cfg)
		records := f.Produce(f.many(20)...)
		f.Parked(records[7], tier1, "")
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		cfg.Policy.Tiers = []time.Duration{tier1 / 2, tier1, tier1 * 2, tier2}
		f.Run(cfg)
		for _, r := range records {
			f.DeadLettered(r, headers.ReasonExhausted)
		}
		f.Conserved()
	},
	"a second Run is refused, and the first goes on": func(t *testing.T, f *fixture) {
		c := f.Run(f.config(ok))
		if err := c.Run(context.Background()); !errors.Is(err, consumer.ErrRunning) {
			t.Errorf("the second Run returned %v, want ErrRunning", err)
		}
		f.Handled(f.Produce(f.record("x"))[0], 1)
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(context.Background()); !errors.Is(err, consumer.ErrRunning) {
			t.Errorf("Run after the end returned %v, want ErrRunning", err)
		}
	},
	"a Run that is over before it begins returns nil": func(t *testing.T, f *fixture) {
		cfg := f.config(ok)
		cfg.Kafka = f.Opts()
		c, err := consumer.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
	},
	"topics that do not exist are an error that names each": func(t *testing.T, f *fixture) {
		for name, mode := range map[string]retrytopics.Mode{"create": retrytopics.Create, "verify": retrytopics.Verify, "off": retrytopics.Off} {
			cfg := f.config(ok)
			cfg.Topics = []string{f.topic + "-gone", f.topic, f.topic + "-lost"}
			cfg.Provision.Mode = mode
			err := f.Begin(cfg).Wait()
			if err == nil || !strings.Contains(err.Error(), f.topic+"-gone") || !strings.Contains(err.Error(), f.topic+"-lost") {
				t.Errorf("%s: Run returned %v, want an error that names both topics", name, err)
			}
		}
	},
	"siblings that are missing and may not be created are commands to run": func(t *testing.T, f *fixture) {
		cfg := f.config(ok)
		cfg.Provision.Mode = retrytopics.Verify
		err := f.Begin(cfg).Wait()
		var undone *retrytopics.UndoneError
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
		c := f.startPinned(t, consumer.StartLatest(), int64(len(before)))
		while := f.Produce(f.pinned("while", time.Time{}))[0] // nobody runs
		f.runPinned(t, consumer.StartLatest())
		f.Handled(while, 1)
		for _, r := range before {
			f.Handled(r, 0)
		}
		_ = c
	},
	"StartEarliest begins at the start, and a restart where it began": func(t *testing.T, f *fixture) {
		before := f.Produce(f.pinned("before", time.Time{}), f.pinned("before", time.Time{}))
		f.runPinned(t, consumer.StartEarliest())
		for _, r := range before {
			f.Handled(r, 1)
		}
		f.committed(t, f.topic, 1, 2)
	},
	"StartAt begins at the first record as young, and a restart where it began": func(t *testing.T, f *fixture) {
		at := time.UnixMilli(time.Now().UnixMilli()).Add(-time.Hour)
		old := f.Produce(f.pinned("old", at.Add(-time.Minute)), f.pinned("older", at.Add(-time.Hour)))
		young := f.Produce(f.pinned("young", at), f.pinned("younger", at.Add(time.Minute)))
		f.startPinned(t, consumer.StartAt(at), 2)
		f.runPinned(t, consumer.StartEarliest()) // what is committed counts, not the option
		for _, r := range young {
			f.Handled(r, 1)
		}
		for _, r := range old {
			f.Handled(r, 0)
		}
	},
	"StartAt in the future begins at the end": func(t *testing.T, f *fixture) {
		before := f.Produce(f.pinned("before", time.Time{}))[0]
		f.startPinned(t, consumer.StartAt(time.Now().Add(time.Hour)), 1)
		f.runPinned(t, consumer.StartEarliest())
		f.Handled(f.Produce(f.pinned("after", time.Time{}))[0], 1)
		f.Handled(before, 0)
	},
	"retry topics begin at their start whatever the source's start": func(t *testing.T, f *fixture) {
		cfg := f.config(ok)
		c := f.Run(cfg)
		if err := c.Stop(); err != nil { // the siblings are there now
			t.Fatal(err)
		}
		m := f.copyOf(4711, 1, time.Now())
		m.Group = f.group + "-new"
		f.Produce(&kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Value: []byte("x"), Headers: m.Append(nil)})
		cfg.Group, cfg.Start = m.Group, consumer.StartLatest()
		f.Run(cfg)
		f.Handled(&kgo.Record{Topic: f.topic, Partition: 1, Offset: 4711}, 1)
	},
}

// copyOf is what the headers of a copy say that siding wrote, of a record on partition 1 that is due at once.
func (f *fixture) copyOf(offset int64, attempts int, at time.Time) *headers.Meta {
	return &headers.Meta{
		Original: headers.Position{Topic: f.topic, Partition: 1, Offset: offset, Timestamp: at}, Group: f.group, Attempts: attempts,
		Class: "busy", Message: "busy", FirstFailedAt: at, FailedAt: at, NotBefore: at, Hops: 1,
		History: []headers.Attempt{{Number: 1, Class: "busy", At: at}},
	}
}

func (f *fixture) tierTopic(delay time.Duration) string {
	return f.topic + ".retry." + retrytopics.FormatDelay(delay)
}

// pinned is a record for partition 1.
func (f *fixture) pinned(value string, at time.Time) *kgo.Record {
	return &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte(value), Timestamp: at}
}

// startPinned runs a consumer with the start option until its start is committed, before it ran a record.
func (f *fixture) startPinned(t *testing.T, start consumer.Start, want int64) *consumer.Consumer {
	t.Helper()
	cfg := f.config(func(ctx context.Context, _ *kgo.Record) error {
		<-ctx.Done() // none of them gets done, so all that is committed is the start
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
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := f.committedNow(t, f.group, f.topic, 1); got != want {
		t.Errorf("%d is committed at the end, want the start still, %d", got, want)
	}
	return c.Consumer
}

func (f *fixture) runPinned(t *testing.T, start consumer.Start) {
	t.Helper()
	cfg := f.config(ok)
	cfg.Start = start
	f.Run(cfg)
}

// client is a plain one, which ends with the test.
func (f *fixture) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(f.Opts(), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func (f *fixture) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), f.Patience)
}

// find waits for a record on a topic.
func (f *fixture) find(t *testing.T, topic string, is func(*kgo.Record) bool) *kgo.Record {
	t.Helper()
	cl := f.client(t, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200*time.Millisecond))
	defer cl.Close()
	ctx, cancel := f.within()
	defer cancel()
	for {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("no such record on %s: %v", topic, err)
		}
		for _, r := range fetches.Records() {
			if is(r) {
				return r
			}
		}
	}
}

// count counts the offsets that a topic has in use.
func (f *fixture) count(t *testing.T, topic string) (n int64) {
	t.Helper()
	cl := f.client(t)
	defer cl.Close()
	ctx, cancel := f.within()
	defer cancel()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// topics are those whose names begin with the fixture's.
func (f *fixture) topics(t *testing.T) (names []string) {
	t.Helper()
	cl := f.client(t)
	defer cl.Close()
	ctx, cancel := f.within()
	defer cancel()
	all, err := kadm.NewClient(cl).ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if strings.HasPrefix(name, f.topic) {
			names = append(names, name)
		}
	}
	return names
}

// committedNow is what the group has committed; -1 for nothing.
func (f *fixture) committedNow(t *testing.T, group, topic string, partition int32) int64 {
	t.Helper()
	cl := f.client(t)
	defer cl.Close()
	ctx, cancel := f.within()
	defer cancel()
	offsets, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := offsets.Lookup(topic, partition); ok {
		return o.At
	}
	return -1
}

// committed waits until the fixture's group has committed the offset.
func (f *fixture) committed(t *testing.T, topic string, partition int32, want int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d is committed on %s/%d", want, topic, partition), func() bool {
		return f.committedNow(t, f.group, topic, partition) == want
	})
}

// value is that of a record's only header with the key.
func value(r *kgo.Record, key string) string {
	all := slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool { return h.Key != key })
	if len(all) != 1 {
		return fmt.Sprintf("%d times", len(all))
	}
	return string(all[0].Value)
}

func without(h []kgo.RecordHeader, keys ...string) []kgo.RecordHeader {
	return slices.DeleteFunc(slices.Clone(h), func(h kgo.RecordHeader) bool { return slices.Contains(keys, h.Key) })
}

// sameHeaders is equality of keys, values and order. That a null value became an empty one is the broker's to say.
func sameHeaders(a, b []kgo.RecordHeader) bool {
	return slices.EqualFunc(a, b, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}
