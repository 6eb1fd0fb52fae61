package headers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func large(r Reason) Meta {
	m := full(r)
	m.Message = strings.Repeat("mé", 300)
	m.History = nil
	for i := range 60 {
		m.History = append(m.History, Attempt{Number: i + 1, Class: "timeout", At: t0})
	}
	if r != "" {
		m.Stack = strings.Repeat("main.handle(0x1)\n\t/src/main.go:12 +0x1d\n", 80)
	}
	return m
}

// encoded returns the size of headers in a record as the protocol's code writes it.
func encoded(h []kgo.RecordHeader) int {
	record := func(h []kgo.RecordHeader) int {
		var r kmsg.Record
		for _, h := range h {
			r.Headers = append(r.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		return len(r.AppendTo(nil))
	}
	return record(h) - record(nil)
}

func TestShrink_SizeIsThatInARecord(t *testing.T) {
	t.Parallel()
	for _, m := range []Meta{full(""), full(ReasonPanic), large(ReasonPanic), {}} {
		if got, want := m.Size(), encoded(m.Append(nil)); got != want {
			t.Errorf("Size() = %d, want %d", got, want)
		}
	}
}

func TestShrink_DropsHistoryThenStackThenMessage(t *testing.T) {
	t.Parallel()
	for _, reason := range []Reason{"", ReasonPanic} {
		least := large(reason)
		if least.Shrink(0) {
			t.Errorf("reason %q: nothing at all is left", reason)
		}
		for size := -1; size <= 10_000; size += 37 {
			before, m := large(reason), large(reason)
			ok := m.Shrink(size)
			if fits := m.Size() <= size; ok != fits {
				t.Fatalf("reason %q: Shrink(%d) = %v with %d bytes", reason, size, ok, m.Size())
			}
			if ok != (size >= least.Size()) {
				t.Fatalf("reason %q: Shrink(%d) = %v, at least %d is possible", reason, size, ok, least.Size())
			}
			switch {
			case before.Size() <= size:
				if d := cmp.Diff(before, m); d != "" {
					t.Fatalf("Shrink(%d) changed what fits:\n%s", size, d)
				}
			case len(m.Stack) < len(before.Stack) && len(m.History) > 0:
				t.Fatalf("Shrink(%d) cut the stack before the history", size)
			case m.Message != before.Message && (len(m.History) > 0 || m.Stack != ""):
				t.Fatalf("Shrink(%d) cut the message first", size)
			}
			// No more than necessary: an entry, a frame, a character.
			if ok && before.Size() > size && size-m.Size() > 64 {
				t.Fatalf("reason %q: Shrink(%d) left %d bytes unused", reason, size, size-m.Size())
			}
			if m.Stack != "" && !strings.HasSuffix(m.Stack, "\n") {
				t.Fatalf("Shrink(%d) cut a line in two: %q", size, m.Stack)
			}
			if n := len(m.History); n > 0 && m.History[n-1] != before.History[len(before.History)-1] {
				t.Fatalf("Shrink(%d) dropped the newest entry", size)
			}
			// All else stays, and the shortened headers still parse.
			back := mustParse(t, m.Append(nil))
			if d := cmp.Diff(m, back); d != "" && len(m.History) > 0 {
				t.Fatalf("Shrink(%d), read back (-want +got):\n%s", size, d)
			}
			m.History, m.Stack, m.Message = before.History, before.Stack, before.Message
			if d := cmp.Diff(before, m); d != "" {
				t.Fatalf("Shrink(%d) touched the rest:\n%s", size, d)
			}
		}
	}
}
