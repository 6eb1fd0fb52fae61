package redrive

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// A copier takes what a letter says as it stands there: whatever stands there, its copy must say what one does that was made of the
// letter's parsed headers, or be left to that; and what it gave for one letter must not change when it makes the next.
func TestAPlainCopyIsWhatThePreparedOneIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &held{
			r: &Redriver{}, topics: &topics{source: "orders", dlq: "orders.dlq"},
			rec: &record{ID: "20260102-150405-0a1b2c", Groups: []string{"billing", "audit"}, Tiers: map[string]string{"billing/3": "orders.retry.5s", "audit/3": "orders.retry.1m"}},
		}
		c := newCopier(h)
		type copies struct{ plain, prepared *outgoing }
		var all []copies
		for i := range rapid.IntRange(1, 300).Draw(t, "letters") {
			story := someHeaders(t)
			if _, err := headers.Parse(story); err != nil {
				continue // it is not brought back to a tier
			}
			r := &kgo.Record{Topic: "orders.dlq", Partition: 3, Offset: int64(i), Key: []byte{1}, Value: []byte{2}, Headers: story}
			before := slices.Clone(r.Headers)
			got := c.plain(r)
			if d := cmp.Diff(before, r.Headers); d != "" {
				t.Fatalf("the letter was changed:\n%s", d)
			}
			if got == nil {
				continue
			}
			want, why, err := h.prepare(t.Context(), r)
			if want == nil {
				t.Fatalf("%q is copied, though %q, %v", r.Headers, why, err)
			}
			all = append(all, copies{got, want})
		}
		for _, c := range all {
			if p, q := &c.prepared.copy, &c.plain.copy; c.prepared.place != c.plain.place || c.prepared.group != c.plain.group ||
				p.Topic != q.Topic || p.Partition != q.Partition || string(p.Key) != string(q.Key) || string(p.Value) != string(q.Value) {
				t.Fatalf("prepared %+v, plain %+v", c.prepared, c.plain)
			}
			want, err1 := headers.Parse(c.prepared.copy.Headers)
			got, err2 := headers.Parse(c.plain.copy.Headers)
			if d := cmp.Diff(want, got); d != "" || err1 != nil || err2 != nil {
				t.Fatalf("-prepared %v +plain %v:\n%s", err1, err2, d)
			}
			if d := cmp.Diff(headers.Strip(c.prepared.copy.Headers), headers.Strip(c.plain.copy.Headers)); d != "" {
				t.Fatalf("the user's, -prepared +plain:\n%s", d)
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
	if n := rapid.IntRange(0, 2).Draw(t, "redrives"); n > 0 {
		m.Redrive = headers.Redrive{ID: "before", Count: n, From: headers.Position{Topic: "orders.dlq", Partition: 3, Offset: 1}}
		if rapid.Bool().Draw(t, "returned") {
			m.Redrive.Original = headers.Position{Topic: "orders", Partition: 3, Offset: 2}
		}
	}
	users := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "dlq-mine", Value: []byte("2")}, {Key: "a"}}
	if m.ValueOmitted { // it would be read at its original place
		m.Group = "others"
	}
	h := m.Append(users[:rapid.IntRange(0, len(users)).Draw(t, "users")])
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
