package headers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidingkafka/siding/classify"
)

func TestMeta_FailRecordsOneDelivery(t *testing.T) {
	t.Parallel()
	m := Meta{NotBefore: t0, Held: true, Reason: ReasonHeld}
	m.Fail(classify.Result{Verdict: classify.VerdictRetry, Class: "timeout", Fingerprint: "f1", Stack: "s"}, "redacted", t0)
	want := Meta{
		Attempts: 1, Class: "timeout", Fingerprint: "f1", Stack: "s", Message: "redacted",
		FirstFailedAt: t0, FailedAt: t0,
		History: []Attempt{{Number: 1, Class: "timeout", At: t0, Verdict: "retry", Message: "redacted"}},
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

// These functions run once per failing record, Strip once per record with headers. Not parallel:
// AllocsPerRun counts the process.
func TestMeta_HotPathAllocations(t *testing.T) {
	m, user := full(""), userHeaders()
	letter := full(ReasonPanic)
	h := m.Append(user)
	for _, tt := range []struct {
		name string
		want float64
		f    func()
	}{
		{"Append to a retry topic", 2, func() { sinkHeaders = m.Append(h) }},
		{"Append to a DLQ", 2, func() { sinkHeaders = letter.Append(user) }},
		{"Parse: text, history, two encoded messages", 4, func() { sinkMeta, _ = Parse(h) }},
		{"Parse of user headers", 0, func() { sinkMeta, _ = Parse(user) }},
		{"Strip of user headers", 0, func() { sinkHeaders = Strip(user) }},
		{"Strip", 1, func() { sinkHeaders = Strip(h) }},
		{"CheckRetry", 0, func() { _ = m.CheckRetry(t0, 1<<60) }},
	} {
		if got := testing.AllocsPerRun(100, tt.f); got > tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
}
