package dlq

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// entries has one entry of each kind.
func entries() []Entry {
	at := time.Date(2026, 11, 21, 3, 0, 0, 250_000_000, time.UTC)
	id := [16]byte{0xfb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff}
	return []Entry{
		{TopicID: id, State: Redriven, Run: "7f3a", At: at, By: "ada", Why: "fixed in v1.4.2", Target: headers.Position{Topic: "orders.retry.5s", Partition: 3, Offset: 1045}},
		{TopicID: id, State: Succeeded, Run: "7f3a", At: at.Add(time.Second)},
		{TopicID: id, State: Failed, Run: "7f3a", At: at, Class: "orders.SKUError"},
		{TopicID: id, State: Discarded, At: at, By: "ada", Why: `a test order, "really" <7>`},
		{TopicID: id, State: Expired, Run: "7f3a", At: at},
		{TopicID: id, State: Duplicate, At: at},
		{State: Unknown, Run: "7f3a", At: at},
		{State: Redriven, Run: "7f3a", At: at, Target: headers.Position{Topic: "orders", Offset: 1}, Edited: []string{"headers", "value"}},
		{},
	}
}

// The format is a promise: later versions read the entries of earlier ones.
func TestEntry_FormatIsStable(t *testing.T) {
	t.Parallel()
	for file, entries := range map[string][]Entry{"entries-v1.txt": entries(), "entries-v2.txt": laterEntries(), "entries-v3.txt": latestEntries()} {
		var got bytes.Buffer
		for i, e := range entries {
			r := e.Record("orders.dlq.ledger", 3, int64(i)*1_000_000_007)
			if r.Topic != "orders.dlq.ledger" || r.Partition != 3 || (r.Value == nil) != (e.State == "") {
				t.Errorf("entry %d is on %s-%d with value %q", i, r.Topic, r.Partition, r.Value)
			}
			fmt.Fprintf(&got, "%s %s\n", r.Key, r.Value)
			offset, again, err := readEntry(r)
			if err != nil || offset != int64(i)*1_000_000_007 {
				t.Errorf("entry %d is read as that of letter %d, %v", i, offset, err)
			}
			if d := cmp.Diff(e, again); d != "" {
				t.Errorf("entry %d is read otherwise: %s", i, d)
			}
		}
		golden(t, file, got.String())
	}
}

func TestEntry_UnknownFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	_, e, err := readEntry(&kgo.Record{Key: []byte("7"), Value: []byte(`{"v":1,"state":"succeeded","at":"2026-11-21T03:00:00Z","mood":{"good":[1]},"run":"r"}`)})
	if err != nil || e.State != Succeeded || e.Run != "r" {
		t.Errorf("entry %+v, %v", e, err)
	}
}

func TestEntryError_NamesThePlaceAndTheRemedy(t *testing.T) {
	t.Parallel()
	const rest = `,"state":"succeeded","at":"2026-11-21T03:00:00Z"`
	for _, c := range []struct {
		key, value string
		offset     int64
		newer      bool
		want       string
	}{
		{"7", ``, 7, false, "unexpected end"},
		{"7", `null`, 7, false, "it names no version"},
		{"7", `{"v":1` + rest, 7, false, "unexpected end"},
		{"7", `{"v":1` + rest + `}{}`, 7, false, "after top-level value"},
		{"7", `[]`, 7, false, "cannot unmarshal array"},
		{"7", `{"v":0` + rest + `}`, 7, false, "it names no version"},
		{"7", `{"v":"1"` + rest + `}`, 7, false, "cannot unmarshal string"},
		{"7", `{"v":4,"state":{}}`, 7, true, "has version 4"},
		{"7", `{"v":1,"state":"lost","at":"2026-11-21T03:00:00Z"}`, 7, false, `its state is "lost"`},
		{"7", `{"v":1,"state":"","at":"2026-11-21T03:00:00Z"}`, 7, false, `its state is ""`},
		{"7", `{"v":1,"state":"succeeded"}`, 7, false, `its time is ""`},
		{"7", `{"v":1,"state":"succeeded","at":"0000-01-01T00:00:00+23:00"}`, 7, false, "its time is"},
		{"7", `{"v":1` + rest + `,"topicId":"x"}`, 7, false, `its topic id is "x"`},
		{"7", `{"v":1` + rest + `,"target":"orders/3"}`, 7, false, `its target "orders/3"`},
		{"", `{"v":1` + rest + `}`, -1, false, "its key is neither"},
		{"07", `{"v":1` + rest + `}`, -1, false, "its key is neither"},
		{"-7", `{"v":1` + rest + `}`, -1, false, "its key is neither"},
		{"9223372036854775808", `{"v":1` + rest + `}`, -1, false, "its key is neither"},
		{"99999999999999999999999", `{"v":1` + rest + `}`, -1, false, "its key is neither"},
		{"run", `{"v":1` + rest + `}`, -1, false, "its key is neither"},
	} {
		r := &kgo.Record{Topic: "orders.dlq.ledger", Partition: 3, Offset: 17, Key: []byte(c.key), Value: []byte(c.value)}
		offset, e, err := readEntry(r)
		var entry *EntryError
		if !errors.As(err, &entry) || e.State != "" || offset != c.offset {
			t.Errorf("%s %s: letter %d, %+v, %v; want letter %d and an error", c.key, c.value, offset, e, err, c.offset)
			continue
		}
		if errors.Is(err, ErrNewerVersion) != c.newer {
			t.Errorf("%s %s: %v, newer %v", c.key, c.value, err, !c.newer)
		}
		todo := map[bool]string{true: "use that version of siding", false: "its letter counts as open until"}[c.newer]
		if c.offset < 0 {
			todo = "about no letter and can stay"
		}
		for _, want := range []string{c.want, "orders.dlq.ledger/3/17", fmt.Sprintf("key %q", c.key), todo} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v; want that it says %q", c.key, c.value, err, want)
			}
		}
	}
}

func FuzzEntry_RoundTrips(f *testing.F) {
	for i, e := range slices.Concat(entries(), laterEntries(), latestEntries()) {
		r := e.Record("l", 0, int64(i))
		f.Add(r.Key, r.Value, r.Value == nil)
	}
	f.Add([]byte("7"), []byte(`{"v":1,"state":"failed","at":"9999-12-31T23:59:59.999999999-23:59","edited":[null,"\ud800"]}`), false)
	f.Add([]byte("run/x"), []byte(`{"v":4}`), false)
	f.Fuzz(func(t *testing.T, key, value []byte, none bool) {
		if none {
			value = nil
		}
		offset, e, err := readEntry(&kgo.Record{Key: key, Value: value})
		if err != nil {
			_ = err.Error()
			return
		}
		r := e.Record("l", 0, offset)
		if !bytes.Equal(r.Key, key) {
			t.Errorf("key %q is written as %q", key, r.Key)
		}
		again, e2, err := readEntry(r)
		if err != nil || again != offset {
			t.Fatalf("%s is read, but not %s: %v", value, r.Value, err)
		}
		if d := cmp.Diff(e, e2); d != "" {
			t.Error(d)
		}
	})
}

func BenchmarkEntry(b *testing.B) {
	e := entries()[0]
	r := e.Record("orders.dlq.ledger", 3, 1045)
	l := NewLedger("orders.dlq", "orders.dlq.ledger")
	b.ReportAllocs()
	for b.Loop() {
		l.take(ParseLedgerRecord(r))
	}
}
