package headers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

func TestReason_DecidesWhichHeadersAreWritten(t *testing.T) {
	t.Parallel()
	m := full(ReasonTerminal)
	m.NotBefore, m.Held, m.Redrive.Original, m.Redrive.MaxAttempts = t0, true, Position{Topic: "orders", Partition: 3, Offset: 7}, 2
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
	if n := len(letter) + len(retryOnly); n != int(reserved.Count)-1 {
		t.Errorf("%d keys are written, want %d: does Append omit a new one?", n, reserved.Count-1)
	}
}

func TestAppend_LeavesItsInputAlone(t *testing.T) {
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

func TestAppend_KeepsLimits(t *testing.T) {
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
	if got.FailedAt.UnixMilli() != reserved.MaxMillis || got.FirstFailedAt.UnixMilli() != 0 {
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

func TestAppend_TextBecomesValidUTF8(t *testing.T) {
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

func TestMeta_AppendSourceWritesWhatARedriveMeans(t *testing.T) {
	t.Parallel()
	m := full(ReasonTerminal)
	letter := m.Append([]kgo.RecordHeader{{Key: "user", Value: []byte("x")}})
	got := keysOf(m.AppendSource(letter))
	want := []string{"user", RedriveID, RedriveCount, RedriveFrom, RedriveAt, FirstFailedAt, History}
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	m.Redrive = Redrive{}
	if got := m.AppendSource(letter); len(got) != 1 {
		t.Errorf("keys %q of no redrive, want the user's only", keysOf(got))
	}
}
