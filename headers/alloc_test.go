package headers

import "testing"

// These functions run once per failing record, Strip once per record with headers. Not parallel:
// AllocsPerRun counts the process.
func TestHotPathAllocations(t *testing.T) {
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
		{"Parse", 2, func() { sinkMeta, _ = Parse(h) }},
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
