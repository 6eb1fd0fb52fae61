package headers

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

var t0 = time.UnixMilli(1_763_000_000_123)

// full returns a Meta with every field set that a dead letter can have or, with an empty reason, a
// copy on a retry topic.
func full(r Reason) Meta {
	m := Meta{
		Original: Position{
			Topic:     "orders",
			TopicID:   [16]byte{0: 0xfb, 1: 0xff, 15: 7},
			Partition: 3,
			Offset:    1045,
			Timestamp: t0.Add(-time.Minute),
		},
		Group:         "billing",
		Attempts:      2,
		Class:         "orders.SKUError",
		Message:       "order 7: unknown SKU",
		Fingerprint:   "0123456789abcdef",
		FirstFailedAt: t0,
		FailedAt:      t0.Add(5 * time.Second),
		History: []Attempt{
			{Number: 1, Class: "timeout", At: t0},
			{Number: 2, Class: "orders.SKUError", At: t0.Add(5 * time.Second)},
		},
		Redrive:     Redrive{ID: "r-7f3a", Count: 2, From: Position{Topic: "orders.dlq", Partition: 3, Offset: 12}},
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Hops:        2,
		Version:     "1.4.2",
		Environment: "production",
		Host:        "billing-6d5f",
		Reason:      r,
	}
	if r == "" {
		m.NotBefore = t0.Add(35 * time.Second)
		m.Held = true
	} else {
		m.Stack = "main.handle(0x1)\n\t/src/main.go:12 +0x1d\n"
		m.ValueOmitted = true
	}
	return m
}

func mustParse(t *testing.T, h []kgo.RecordHeader) Meta {
	t.Helper()
	m, err := Parse(h)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return m
}

// keysOf returns the keys of h, in order.
func keysOf(h []kgo.RecordHeader) []string {
	keys := make([]string, len(h))
	for i := range h {
		keys[i] = h[i].Key
	}
	return keys
}

func valueOf(h []kgo.RecordHeader, key string) (value string, ok bool) {
	for i := range h {
		if h[i].Key == key {
			return string(h[i].Value), true
		}
	}
	return "", false
}

// clone returns a deep copy without spare capacity.
func clone(h []kgo.RecordHeader) []kgo.RecordHeader {
	c := slices.Clone(h)
	for i := range c {
		c[i].Value = bytes.Clone(c[i].Value)
	}
	return c
}

func TestParseReadsWhatAppendWrites(t *testing.T) {
	t.Parallel()
	for _, want := range []Meta{
		full(""),
		full(ReasonPanic),
		{Original: Position{Topic: "t"}, Group: "g", NotBefore: t0},
		{Original: Position{Topic: "t", Timestamp: time.UnixMilli(-1)}},
		{Original: Position{Topic: "t", Timestamp: time.UnixMilli(1 << 60)}},
		{Group: "ingest", Reason: ReasonTerminal},
		{},
	} {
		if d := cmp.Diff(want, mustParse(t, want.Append(nil))); d != "" {
			t.Errorf("round trip (-want +got):\n%s", d)
		}
	}
}

func TestReasonDecidesWhichHeadersAreWritten(t *testing.T) {
	t.Parallel()
	m := full(ReasonTerminal)
	m.NotBefore, m.Held, m.Redrive.Original = t0, true, Position{Topic: "orders", Partition: 3, Offset: 7}
	retryOnly, dlqOnly := []string{NotBefore, Held}, []string{FailureReason, ErrorStack, ValueOmitted}

	letter := m.Append(nil)
	m.Reason = ""
	parked := m.Append(nil)
	for _, key := range retryOnly {
		if _, ok := valueOf(letter, key); ok {
			t.Errorf("a dead letter has %s", key)
		}
		if _, ok := valueOf(parked, key); !ok {
			t.Errorf("a copy on a retry topic has no %s", key)
		}
	}
	for _, key := range dlqOnly {
		if _, ok := valueOf(letter, key); !ok {
			t.Errorf("a dead letter has no %s", key)
		}
		if _, ok := valueOf(parked, key); ok {
			t.Errorf("a copy on a retry topic has %s", key)
		}
	}
	if n := len(letter) + len(retryOnly); n != int(numKeys)-1 {
		t.Errorf("%d keys are written, want %d: does Append omit a new one?", n, numKeys-1)
	}
}

func TestAttemptsAreWrittenEvenWhenZero(t *testing.T) {
	t.Parallel()
	if v, ok := valueOf(new(Meta).Append(nil), Attempts); !ok || v != "0" {
		t.Errorf("%s = %q, %v; want 0", Attempts, v, ok)
	}
}

// Other frameworks append their headers at every hop, and readers find the oldest error first.
func TestHopReplacesAndNeverAdds(t *testing.T) {
	t.Parallel()
	user := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "dlq-mine", Value: nil}, {Key: "a", Value: []byte{}}, {Key: ""}}
	m := full("")
	h := m.Append(user)
	first := len(h)
	for range 50 {
		m = mustParse(t, h)
		m.Fail(classify.Result{Class: "timeout", Fingerprint: "fedcba9876543210"}, "new", t0.Add(time.Hour))
		m.NotBefore, m.Held = t0.Add(2*time.Hour), true
		h = m.Append(h)
	}
	if len(h) != first {
		t.Errorf("%d headers after 50 hops, want %d", len(h), first)
	}
	keys := keysOf(h)
	slices.Sort(keys)
	if n := len(slices.Compact(slices.DeleteFunc(keys, func(k string) bool { return !Reserved(k) }))); n != first-len(user) {
		t.Errorf("%d different reserved keys, want %d", n, first-len(user))
	}
	if v, _ := valueOf(h, ErrorClass); v != "timeout" {
		t.Errorf("class %q, want that of the last failure", v)
	}
	if d := cmp.Diff(user, h[:len(user)]); d != "" {
		t.Errorf("user headers (-want +got):\n%s", d)
	}
}

func TestAppendLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	m := full("")
	spare := make([]kgo.RecordHeader, 2, 100)
	spare[0] = kgo.RecordHeader{Key: "user", Value: []byte("x")}
	spare[1] = kgo.RecordHeader{Key: Attempts, Value: []byte("7")}
	before := clone(spare)
	out := m.Append(spare)
	if d := cmp.Diff(before, spare); d != "" {
		t.Errorf("input changed (-before +after):\n%s", d)
	}
	if spare[:3][2].Key != "" {
		t.Error("Append wrote behind its input")
	}
	// Values share an array: one must not grow into the next.
	for i := range out {
		v := out[i].Value
		if !Reserved(out[i].Key) {
			continue
		}
		if cap(v) != len(v) {
			t.Errorf("%s has %d bytes of capacity behind its value", out[i].Key, cap(v)-len(v))
		}
	}
}

func TestAppendKeepsLimits(t *testing.T) {
	t.Parallel()
	m := full(ReasonTerminal)
	m.Message = strings.Repeat("é", MaxMessage)
	m.Stack = strings.Repeat("x", MaxStack-1) + "€"
	m.Class = strings.Repeat("c", 500)
	m.Host = strings.Repeat("h", 5000)
	m.Attempts = 1 << 40
	m.Hops = 1 << 40
	m.Redrive.Count = -5
	m.FailedAt = time.Date(12_345, 1, 1, 0, 0, 0, 0, time.UTC)
	m.FirstFailedAt = time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)
	m.Fingerprint = "none"
	m.History = nil
	for i := range 1000 {
		m.History = append(m.History, Attempt{Number: i, Class: "time out", At: t0})
	}
	got := mustParse(t, m.Append(nil))
	if got.Message != m.Message[:MaxMessage] {
		t.Errorf("message of %d bytes, want the first %d", len(got.Message), MaxMessage)
	}
	if got.Stack != m.Stack[:MaxStack-1] {
		t.Errorf("stack of %d bytes, want %d: the last character does not fit", len(got.Stack), MaxStack-1)
	}
	if got.Class != m.Class[:classify.MaxClass] {
		t.Errorf("class of %d bytes, want %d", len(got.Class), classify.MaxClass)
	}
	if got.Attempts != MaxAttempts || got.Hops != MaxAttempts || got.Redrive.Count != 0 {
		t.Errorf("attempts %d, hops %d, redriven %d; want them within bounds", got.Attempts, got.Hops, got.Redrive.Count)
	}
	if got.FailedAt.UnixMilli() != maxMillis || got.FirstFailedAt.UnixMilli() != 0 {
		t.Errorf("failed %v … %v, want times within bounds", got.FirstFailedAt, got.FailedAt)
	}
	if got.Fingerprint != "" {
		t.Errorf("fingerprint %q, want none", got.Fingerprint)
	}
	h, _ := valueOf(m.Append(nil), History)
	if len(h) > MaxHistory || len(h) < MaxHistory-64 {
		t.Errorf("history of %d bytes, want just under %d", len(h), MaxHistory)
	}
	if last := got.History[len(got.History)-1]; last.Number != 999 || last.Class != "time_out" {
		t.Errorf("newest entry %+v, want the last", last)
	}
}

func TestTextBecomesValidUTF8(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                           "plain",
		"a\xffb":                          "a\ufffdb",
		"\xe2\x82":                        "\ufffd\ufffd",
		strings.Repeat("\xff", 2000):      strings.Repeat("\ufffd", MaxMessage/3),
		strings.Repeat("x", 1023) + "é":   strings.Repeat("x", 1023),
		strings.Repeat("x", 1022) + "é":   strings.Repeat("x", 1022) + "é",
		strings.Repeat("x", 1021) + "😀":   strings.Repeat("x", 1021),
		strings.Repeat("x", 1020) + "😀":   strings.Repeat("x", 1020) + "😀",
		strings.Repeat("\x80", 3) + "end": "\ufffd\ufffd\ufffdend",
	} {
		m := Meta{Message: in}
		if got := mustParse(t, m.Append(nil)).Message; got != want {
			t.Errorf("message %.20q… became %.20q…, want %.20q…", in, got, want)
		}
	}
}

func TestFailTakesDownOneDelivery(t *testing.T) {
	t.Parallel()
	m := Meta{NotBefore: t0, Held: true, Reason: ReasonHeld}
	m.Fail(classify.Result{Class: "timeout", Fingerprint: "f1", Stack: "s"}, "redacted", t0)
	want := Meta{
		Attempts: 1, Class: "timeout", Fingerprint: "f1", Stack: "s", Message: "redacted",
		FirstFailedAt: t0, FailedAt: t0, History: []Attempt{{1, "timeout", t0}},
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Errorf("first failure (-want +got):\n%s", d)
	}

	// The same history continues twice, as when a record is sent to a tier, refused there, and sent
	// to the DLQ.
	m.History = append(make([]Attempt, 0, 10), m.History...)
	a, b := m, m
	a.Fail(classify.Result{Class: "a"}, "", t0.Add(time.Second))
	b.Fail(classify.Result{Class: "b"}, "", t0.Add(2*time.Second))
	if a.History[1].Class != "a" || b.History[1].Class != "b" || len(m.History) != 1 {
		t.Errorf("histories share memory: %v, %v, %v", a.History, b.History, m.History)
	}
	if a.Attempts != 2 || !a.FirstFailedAt.Equal(t0) || !a.FailedAt.Equal(t0.Add(time.Second)) {
		t.Errorf("second failure: %+v", a)
	}

	for range 1000 {
		a.Fail(classify.Result{Class: "timeout"}, "", t0)
	}
	if len(a.History) > MaxHistory/10 {
		t.Errorf("%d entries are kept in memory", len(a.History))
	}
	a.Attempts = MaxAttempts
	if a.Fail(classify.Result{}, "", t0); a.Attempts != MaxAttempts {
		t.Errorf("attempts %d, want at most %d", a.Attempts, MaxAttempts)
	}
}

func TestRedriveAppendWritesNothingElse(t *testing.T) {
	t.Parallel()
	m := full(ReasonTerminal)
	letter := m.Append([]kgo.RecordHeader{{Key: "user", Value: []byte("x")}})
	got := keysOf(m.Redrive.Append(letter))
	want := []string{"user", RedriveID, RedriveCount, RedriveFrom}
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	if got := new(Redrive).Append(letter); len(got) != 1 {
		t.Errorf("keys %q of no redrive, want the user's only", keysOf(got))
	}
}
