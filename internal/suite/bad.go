package suite

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

// bad: headers that no producer should send.
var bad = map[string]func(*testing.T, *fixture){
	// Trap 13: a forged or broken header for the due time or the attempts. Delivered early the
	// record would run at once; accepted it would wait for ever. So neither happens.
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
			key    string // the key that the dead letter must name
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
			{headers.MetaFields, set(headers.MetaFields, "no field")},
			{headers.MetaFields, more(headers.MetaFields, "hops=1;")},
			{headers.MetaFields, set(headers.MetaFields, "history=1:busy;")},
			{headers.MetaFields, set(headers.MetaFields, "held=yes;")},
			{headers.MetaFields, set(headers.MetaFields, "runs=1;")},
			// as before dlq-meta: the others of a redrive are missing
			{headers.MetaFields, more("dlq-redrive-count", "1")},
			{"dlq-hops", set("dlq-hops", "-1")},
		}
		var runs atomic.Int32
		f.Run(f.config(counting(&runs)))
		at := time.UnixMilli(now.UnixMilli()).Add(-time.Hour)
		var copies []*kgo.Record
		for i, b := range broken {
			h := f.copyOf(int64(i), 1, now).Append([]kgo.RecordHeader{{Key: "mine", Value: []byte("1")}, {Key: "dlq-mine", Value: nil}, {Key: "mine", Value: []byte("2")}})
			copies = append(copies, &kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Key: fmt.Append(nil, "key-", i), Value: fmt.Append(nil, "value-", i), Timestamp: at, Headers: b.change(h)})
		}
		copies = append(copies,
			// No header of siding, a null key, a null value.
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
			key := headers.OriginalTopic // if all are missing, the first is named
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
	// Trap 19: a dead letter that is copied back with its headers would get no retries.
	"reserved headers on a source record steer nothing and are taken off": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		seen := map[int][]kgo.RecordHeader{}
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.DeliveryOf(ctx, r)
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
			ids[string(r.Value)] = consumer.DeliveryOf(ctx, r).RedriveID
			return classify.Retryable(errBusy)
		}))
		from := func(value, topic string) *kgo.Record {
			m := headers.Meta{Redrive: headers.Redrive{ID: "run-1", Count: 2, From: headers.Position{Topic: topic, Partition: 1, Offset: 5}}}
			return &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte(value), Headers: m.AppendSource(nil)}
		}
		half := from("half", f.topic+".dlq")
		half.Headers = reserved.Without(half.Headers, reserved.SetOf(reserved.RedriveFrom))
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
				t.Errorf("%s: the handler gets redrive %q, want %q", r.Value, got, want.ID)
			}
			mu.Unlock()
		}
		f.Conserved()
	},
	"a record with no attempts in a tier runs as its first": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		var seen []consumer.Delivery
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, consumer.DeliveryOf(ctx, r))
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
}
