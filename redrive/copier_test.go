package redrive

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/costs"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// A copier takes what a letter says as it stands there: whatever stands there, its copy must say
// what the letter's parsed headers say, and what it gave for one letter must not change when it
// makes the next. It is due by every clock: it was due by that of the operator's machine, and a run
// waited for an hour where that was an hour ahead.
func TestCopier_ACopyHasItsLettersHeaders(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		edit := rapid.SampledFrom([]Edit{{}, {}, {Value: []byte("new")}, {Set: []kgo.RecordHeader{{Key: "a", Value: []byte("3")}, {Key: "b"}}, Unset: []string{"dlq-mine"}}}).Draw(t, "edit")
		run := &ownedRun{
			r: &Redriver{}, topics: &topics{source: "orders", dlq: "orders.dlq"},
			rec: &record{
				ID: "20260102-150405-0a1b2c", Groups: []string{"billing", "audit"}, Edit: editRecord{edit}, MaxAttempts: rapid.IntRange(0, 2).Draw(t, "most"),
				Tiers: map[string]string{"billing/3": "orders.retry.5s", "audit/3": "orders.retry.1m"},
			},
		}
		c := newCopier(run)
		type copied struct {
			letter *kgo.Record
			copy   *outgoing
		}
		var all []copied
		for i := range rapid.IntRange(1, 300).Draw(t, "letters") {
			story := someHeaders(t)
			m, broken := headers.Parse(story)
			if broken != nil || m.Group == "" || m.Original.Topic != "orders" {
				continue // a plan does not take it to a tier
			}
			r := &kgo.Record{Topic: "orders.dlq", Partition: 3, Offset: int64(i), Key: []byte{1}, Value: []byte{2}, Headers: story}
			before := slices.Clone(r.Headers)
			got, why, err := c.copy(t.Context(), r)
			if d := cmp.Diff(before, r.Headers); d != "" {
				t.Fatalf("the letter was changed:\n%s", d)
			}
			if (got == nil) != (run.rec.Tiers[destination{m.Group, m.Original.Partition}.String()] == "") {
				t.Fatalf("of %q it makes %v, %q, %v", r.Headers, got, why, err)
			}
			if got != nil {
				all = append(all, copied{r, got})
			}
		}
		for _, c := range all {
			m, _ := headers.Parse(c.letter.Headers)
			value := c.letter.Value
			if edit.Value != nil {
				value = edit.Value
			}
			if o := c.copy; o.Place != letters.At(3, c.letter.Offset) || o.group != m.Group || o.copy.Topic != run.rec.Tiers[m.Group+"/3"] ||
				o.copy.Partition != 3 || string(o.copy.Key) != "\x01" || string(o.copy.Value) != string(value) {
				t.Fatalf("of %+v it made %+v", c.letter, o)
			}
			want := headers.Meta{
				Original: m.Original, Group: m.Group, NotBefore: time.UnixMilli(0), Hops: 1, TraceParent: m.TraceParent, Version: m.Version,
				Environment: m.Environment, Host: m.Host, FirstFailedAt: m.FirstFailedAt, History: m.History,
				Redrive: headers.Redrive{
					ID: run.rec.ID, Count: min(m.Redrive.Count+1, headers.MaxAttempts), From: c.copy.In("orders.dlq"), Original: m.Redrive.Original,
					MaxAttempts: run.rec.MaxAttempts,
				},
			}
			got, _ := headers.Parse(c.copy.copy.Headers)
			if at := got.Redrive.At; !at.Equal(notSentAt) {
				t.Fatalf("redriven at %v, before its transaction set that", at)
			}
			c.copy.setSent([]byte("946684800000"))
			c.copy.setSent([]byte("1763000000123"))
			got, err := headers.Parse(c.copy.copy.Headers)
			if at := got.Redrive.At; at.UnixMilli() != 1_763_000_000_123 {
				t.Fatalf("redriven at %v, want the time that its transaction set", at)
			}
			got.Redrive.At = time.Time{}
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Fatalf("-want +got, %v:\n%s", err, d)
			}
			if d := cmp.Diff(edit.headersOf(headers.Strip(c.letter.Headers)), headers.Strip(c.copy.copy.Headers)); d != "" {
				t.Fatalf("the user's, -want +got:\n%s", d)
			}
		}
	})
}

// someHeaders are a letter's, most often as siding writes them.
func someHeaders(t *rapid.T) []kgo.RecordHeader {
	some := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	m := headers.Meta{
		Original: headers.Position{Topic: some("topic", "orders", "orders", "orders", "payments"), Partition: rapid.Int32Range(3, 4).Draw(t, "partition"), Offset: rapid.Int64Range(0, 1<<40).Draw(t, "offset")},
		Group:    some("group", "billing", "billing", "audit", "others"), Attempts: 4, Class: "tax", Message: "no", Fingerprint: "0123456789abcdef",
		Reason: headers.ReasonExhausted, FirstFailedAt: time.UnixMilli(1), FailedAt: time.UnixMilli(2), Hops: 3,
		History: []headers.Attempt{{Number: 1, Class: "tax", At: time.UnixMilli(1)}}, TraceParent: some("trace", "", "00-1-2-01"),
		Version: some("version", "", "v1"), Environment: some("environment", "", "prod"), Host: some("host", "", "h1"),
		ValueOmitted: some("omitted", "", "", "", "", "yes") == "yes",
	}
	if rapid.Bool().Draw(t, "stamped") {
		m.Original.Timestamp, m.Original.TopicID = time.UnixMilli(3), [16]byte{1}
	}
	if n := rapid.SampledFrom([]int{0, 1, 2, headers.MaxAttempts}).Draw(t, "redrives"); n > 0 {
		m.Redrive = headers.Redrive{ID: "before", Count: n, From: headers.Position{Topic: "orders.dlq", Partition: 3, Offset: 1}}
		if rapid.Bool().Draw(t, "returned") {
			m.Redrive.Original = headers.Position{Topic: "orders", Partition: 3, Offset: 2}
			m.Redrive.At, m.Redrive.MaxAttempts = time.UnixMilli(4), 7
		}
	}
	users := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "dlq-mine", Value: []byte("2")}, {Key: "a"}}
	if m.ValueOmitted { // it would be read at its original place
		m.Group = "others"
	}
	if rapid.Bool().Draw(t, "failed once") {
		m.FailedAt = m.FirstFailedAt
	}
	h := m.Append(users[:rapid.IntRange(0, len(users)).Draw(t, "users")])
	if rapid.Bool().Draw(t, "before dlq-meta") {
		var each []kgo.RecordHeader
		for key, value := range headers.Values(h) {
			if key != headers.MetaFields {
				each = append(each, kgo.RecordHeader{Key: key, Value: value})
			}
		}
		h = each
	}
	if rapid.IntRange(0, 4).Draw(t, "broken") == 0 {
		i := rapid.IntRange(0, len(h)-1).Draw(t, "which")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			h = slices.Delete(h, i, i+1)
		case 1:
			h = append(h, h[i])
		case 2:
			h[i].Value = []byte(strconv.Itoa(rapid.IntRange(-5, 5).Draw(t, "value")))
		}
	}
	return h
}

// A number may have any number of leading zeros. Those of dlq-failed-at had no room in the copy:
// the run panicked, and again when it was resumed.
func TestCopier_HasRoomForTheLongestTime(t *testing.T) {
	t.Parallel()
	for _, zeros := range []int{0, 60, 1_000, chunkText} {
		c := newCopier(&ownedRun{r: &Redriver{}, topics: &topics{source: "orders", dlq: "orders.dlq"}, rec: &record{ID: "a", Tiers: map[string]string{"billing/3": "orders.retry.5s"}}})
		m := headers.Meta{Original: headers.Position{Topic: "orders", Partition: 3}, Group: "billing", Host: "h"}
		failed := append(bytes.Repeat([]byte("0"), zeros), "1800000000000"...)
		letter := &kgo.Record{Topic: "orders.dlq", Headers: append(m.Append(nil), kgo.RecordHeader{Key: headers.FailedAt, Value: failed})}
		for range chunkText / 100 { // until a chunk is full
			o, skipped, err := c.copy(t.Context(), letter)
			if o == nil {
				t.Fatal(skipped, err)
			}
			if m, err := headers.Parse(o.copy.Headers); err != nil || m.FirstFailedAt.UnixMilli() != 1_800_000_000_000 {
				t.Fatalf("%d zeros: %+v, %v", zeros, m, err)
			}
		}
	}
}

// A redrive makes a copy of each of a million letters. Not parallel: it counts the allocations of
// the process.
func TestCopier_CostsNoMoreThanItsCeilings(t *testing.T) {
	costs.Hold(t, BenchmarkCopier_ToTier, BenchmarkCopier_ToSource)
}

func BenchmarkCopier_ToTier(b *testing.B) {
	benchmarkCopier(b, &record{Tiers: map[string]string{"billing/3": "orders.retry.5s"}})
}

func BenchmarkCopier_ToSource(b *testing.B) {
	benchmarkCopier(b, &record{Target: Target{Topic: "orders"}})
}

func benchmarkCopier(b *testing.B, rec *record) {
	rec.ID, rec.Groups = "20260102-150405-0a1b2c", []string{"billing"}
	c := newCopier(&ownedRun{r: &Redriver{}, topics: &topics{source: "orders", dlq: "orders.dlq"}, rec: rec})
	at := time.UnixMilli(1_800_000_000_000)
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: 3, Offset: 1045, Timestamp: at}, Group: "billing",
		Attempts: 4, Class: "orders.SKUError", Message: "order 7: unknown SKU", Fingerprint: "0123456789abcdef", Reason: headers.ReasonExhausted,
		FirstFailedAt: at, FailedAt: at.Add(time.Minute), Hops: 3, Version: "v1.4.1", Environment: "production", Host: "orders-7d4f",
	}
	for n := range 4 {
		m.History = append(m.History, headers.Attempt{Number: n + 1, Class: m.Class, At: at.Add(time.Duration(n) * time.Second), Verdict: "retry", Message: m.Message})
	}
	letter := kgo.Record{Topic: "orders.dlq", Partition: 3, Value: make([]byte, 200), Headers: m.Append([]kgo.RecordHeader{{Key: "content-type", Value: []byte("json")}})}
	b.ReportAllocs()
	for b.Loop() {
		letter.Offset++
		if o, skipped, err := c.copy(b.Context(), &letter); o == nil {
			b.Fatal(skipped, err)
		}
	}
}
