package headers

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/internal/reserved"
)

// An encoder shares bytes between records: the headers of one record must not change when it
// encodes the next.
func TestEncoder_GivesWhatAppendGivesForGood(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		at := func(name string) time.Time { return time.UnixMilli(rapid.Int64Range(0, 3).Draw(t, name)) }
		var (
			enc   Encoder
			got   [][]kgo.RecordHeader
			want  [][]kgo.RecordHeader
			users = []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: Group, Value: []byte("forged")}, {Key: "a"}}
		)
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			m := Meta{
				Group: some("group", "g1", "g2"), Class: some("class", "", "x.busy", "päyment"), Attempts: rapid.IntRange(0, 2).Draw(t, "attempts"),
				Message:     some("message", "", "busy", string(make([]byte, 2000)), "\xff\xfe"),
				Fingerprint: some("fingerprint", "", "0123456789abcdef", "none"), Stack: some("stack", "", "main.go"),
				Reason: Reason(some("reason", "", "exhausted", "panic")), FirstFailedAt: at("first"), FailedAt: at("failed"), NotBefore: at("due"),
				Hops: rapid.IntRange(0, 2).Draw(t, "hops"), Version: some("version", "", "v1"), Held: rapid.Bool().Draw(t, "held"),
			}
			m.Original = Position{
				Topic: some("topic", "", "orders", "payments"), Offset: rapid.Int64Range(0, 2).Draw(t, "offset"),
				TopicID: [16]byte{byte(rapid.IntRange(0, 2).Draw(t, "id"))},
			}
			if rapid.Bool().Draw(t, "stamped") {
				m.Original.Timestamp = at("written")
			}
			m.TraceParent, m.Environment, m.Host = some("trace", "", "00-1"), some("environment", "", "prod"), some("host", "", "h1")
			m.Unknown, m.ValueOmitted = some("unknown", "", "later=1;"), rapid.Bool().Draw(t, "omitted")
			for range rapid.IntRange(0, 3).Draw(t, "history") {
				m.History = append(m.History, Attempt{
					Number: rapid.IntRange(0, 1).Draw(t, "number"), Run: rapid.IntRange(0, 1).Draw(t, "run"), Class: some("entry", "", "x"), At: at("entry at"),
					Verdict: some("verdict", "", "retry"), Message: some("said", "", "a, b", "c"),
				})
			}
			h := users[:rapid.IntRange(0, len(users)).Draw(t, "users")]
			got = append(got, enc.Append(&m, h))
			want = append(want, clone(m.Append(h)))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// The fields of a failure are shared if nothing in them differs. One value of Meta is changed at a
// time, also one that is new to the type.
func TestEncoder_NoticesEachChange(t *testing.T) {
	t.Parallel()
	base := full("")
	base.History = base.History[2:]
	bare := base // the values that are left out depend on those before
	bare.Original.TopicID, bare.Fingerprint, bare.Hops = [16]byte{}, "", bare.Attempts
	for _, base := range []Meta{base, bare} {
		for _, base.Reason = range []Reason{"", ReasonExhausted} {
			changed := base
			changed.History = slices.Clone(base.History)
			eachChange(reflect.ValueOf(&changed).Elem(), func() {
				var enc Encoder
				for _, m := range []*Meta{&base, &changed, &base} {
					if d := cmp.Diff(m.Append(nil), enc.Append(m, nil)); d != "" {
						t.Errorf("%+v after %+v:\n%s", changed, base, d)
					}
				}
			})
		}
	}
}

// eachChange calls do with each part of a value changed in turn.
func eachChange(v reflect.Value, do func()) {
	set := func(other any) {
		old := reflect.ValueOf(v.Interface())
		v.Set(reflect.ValueOf(other).Convert(v.Type()))
		do()
		v.Set(old)
	}
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			set(at.Add(time.Millisecond))
			set(time.Time{})
			return
		}
		for i := range v.NumField() {
			eachChange(v.Field(i), do)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachChange(v.Index(i), do)
		}
	case reflect.String:
		set(v.String() + "1")
		set("")
	case reflect.Bool:
		set(!v.Bool())
	default:
		set(7)
	}
}

// An encoder goes from worker to worker, and kept the whole of the last errors' texts. Of a record
// with many headers it keeps none.
func TestEncoder_KeepsLittle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	var enc Encoder
	for _, reason := range []Reason{"", ReasonPanic} {
		m := full(reason)
		if m.Message, m.Stack = long, ""; reason != "" {
			m.Stack = long
		}
		m.History = []Attempt{{Message: m.Message[:MaxHistoryMessage]}}
		enc.Append(&m, make([]kgo.RecordHeader, 1000))
	}
	if n := cap(enc.slots); n > chunkHeaders {
		t.Errorf("room for %d headers is kept", n)
	}
	for k, last := range enc.memo.last {
		if len(last.text) > MaxStack || cap(last.value) > chunkBytes {
			t.Errorf("%v: %d bytes of text and %d of values are kept", reserved.Key(k), len(last.text), cap(last.value))
		}
	}
	if kept := enc.memo.failed.meta.Message + enc.memo.failed.attempt.Message + enc.memo.failed.meta.Stack; kept != "" {
		t.Errorf("%d bytes of the failure are kept", len(kept))
	}
}
