package headers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/costs"
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

// These functions run once per failing record, Strip once per record with headers. Not parallel: it
// counts the allocations of the process.
func TestMeta_CostsNoMoreThanItsCeilings(t *testing.T) {
	costs.Hold(t, BenchmarkMeta_AppendToTier, BenchmarkMeta_AppendToDeadLetters, BenchmarkEncoder_Append, BenchmarkParse, BenchmarkParse_UserHeaders,
		BenchmarkStrip, BenchmarkStrip_UserHeaders, BenchmarkMeta_CheckRetry)
}

// The record has failed before.
func BenchmarkMeta_AppendToTier(b *testing.B) {
	m := full("")
	h := m.Append(userHeaders())
	benchmark(b, func() { sinkHeaders = m.Append(h) })
}

func BenchmarkMeta_AppendToDeadLetters(b *testing.B) {
	m, user := full(ReasonPanic), userHeaders()
	benchmark(b, func() { sinkHeaders = m.Append(user) })
}

func BenchmarkEncoder_Append(b *testing.B) {
	var enc Encoder
	m, user := full(""), userHeaders()
	benchmark(b, func() { sinkHeaders = enc.Append(&m, user) })
}

// The text, the history and two encoded messages are allocated.
func BenchmarkParse(b *testing.B) {
	m := full("")
	h := m.Append(userHeaders())
	benchmark(b, func() { sinkMeta, _ = Parse(h) })
}

func BenchmarkParse_UserHeaders(b *testing.B) {
	user := userHeaders()
	benchmark(b, func() { sinkMeta, _ = Parse(user) })
}

func BenchmarkStrip(b *testing.B) {
	m := full("")
	h := m.Append(userHeaders())
	benchmark(b, func() { sinkHeaders = Strip(h) })
}

func BenchmarkStrip_UserHeaders(b *testing.B) {
	user := userHeaders()
	benchmark(b, func() { sinkHeaders = Strip(user) })
}

func BenchmarkMeta_CheckRetry(b *testing.B) {
	m := full("")
	benchmark(b, func() { _ = m.CheckRetry(t0, 1<<60) })
}

func benchmark(b *testing.B, f func()) {
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}
