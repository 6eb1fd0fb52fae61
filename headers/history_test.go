package headers

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/classify"
)

// The in-place retries of a delivery are calls of their own in the history.
func TestHistory_CallsOfOneDeliveryAreNumbered(t *testing.T) {
	t.Parallel()
	var m Meta
	m.Fail(classify.Result{Verdict: classify.VerdictRetry, Class: "busy"}, "first", t0)
	m.Fail(classify.Result{Class: "broken"}, "third", t0.Add(2*time.Second),
		Attempt{Class: "busy", At: t0.Add(time.Second), Verdict: "retry", Message: strings.Repeat("é", 65)})
	want := []Attempt{
		{Number: 1, Class: "busy", At: t0, Verdict: "retry", Message: "first"},
		{Number: 2, Run: 1, Class: "busy", At: t0.Add(time.Second), Verdict: "retry", Message: strings.Repeat("é", 64)},
		{Number: 2, Run: 2, Class: "broken", At: t0.Add(2 * time.Second), Verdict: "terminal", Message: "third"},
	}
	if d := cmp.Diff(want, mustParse(t, m.Append(nil)).History); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if m.Attempts != 2 || !m.FirstFailedAt.Equal(t0) {
		t.Errorf("%d attempts, the first failed at %v; want 2 and %v", m.Attempts, m.FirstFailedAt, t0)
	}
}

// A record that fails first in place failed first at its first call.
func TestHistory_FirstFailureIsTheFirstCall(t *testing.T) {
	t.Parallel()
	var m Meta
	m.Fail(classify.Result{}, "", t0.Add(time.Minute), Attempt{At: t0})
	if !m.FirstFailedAt.Equal(t0) || !m.FailedAt.Equal(t0.Add(time.Minute)) {
		t.Errorf("failed first at %v and last at %v", m.FirstFailedAt, m.FailedAt)
	}
}

// A record of the first format goes on in the second one: its entries stay, without what they never
// had.
func TestHistory_FormerFormatGoesOn(t *testing.T) {
	t.Parallel()
	m := mustParse(t, with(historyKey, []byte("1:timeout:7,2:timeout:8")))
	m.Fail(classify.Result{Verdict: classify.VerdictRetry, Class: "busy"}, "a, b", time.UnixMilli(9))
	const want = "2,1:timeout:7::,2:timeout:8::,3:busy:9:retry:a%2C b"
	if got, _ := valueOf(former(m.Append(nil)), historyKey); got != want {
		t.Errorf("history %q, want %q", got, want)
	}
	if d := cmp.Diff(m.History, mustParse(t, m.Append(nil)).History); d != "" {
		t.Errorf("read again (-want +got):\n%s", d)
	}
}

// A message is displayed only: whatever another program put there is repaired, not refused.
func TestHistory_ForeignMessagesAreRepaired(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		"a:b:c":                             "a:b:c",
		"%2C%2c%25":                         ",,%",
		"%":                                 "%",
		"%2":                                "%2",
		"100%zz":                            "100%zz",
		"%+1%_1":                            "%+1%_1",
		"%C3%A9":                            "é",
		"%C3":                               "\ufffd",
		"\xc3":                              "\ufffd",
		"%00\x00":                           "\x00\x00",
		strings.Repeat("%41", 600):          strings.Repeat("A", 128),
		strings.Repeat("x", 127) + "é":      strings.Repeat("x", 127),
		strings.Repeat("x", 126) + "%C3%A9": strings.Repeat("x", 126) + "é",
	} {
		m := mustParse(t, with(historyKey, []byte("2,1:a:1:retry:"+in)))
		if got := m.History[0].Message; got != want {
			t.Errorf("%.40q is read as %.40q, want %.40q", in, got, want)
		}
	}
}

// Whatever the messages are, the history keeps to its size, has the newest entries, is one line of
// plain text, and is read as it was meant.
func TestHistory_HoldsAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var m Meta
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			m.History = append(m.History, Attempt{
				Number: rapid.IntRange(0, 9).Draw(t, "number"), Run: rapid.IntRange(0, 3).Draw(t, "run"), At: t0,
				Class: rapid.StringN(1, -1, 140).Draw(t, "class"), Verdict: rapid.SampledFrom([]string{"", "retry", "later-word", "NOT ONE"}).Draw(t, "verdict"),
				Message: rapid.OneOf(rapid.StringN(-1, -1, 300), rapid.StringMatching(`[,%\x00-\x1f\x7f-\x9f]{0,140}`)).Draw(t, "message") +
					strings.Repeat("x", rapid.IntRange(0, 150).Draw(t, "length")) + rapid.SampledFrom([]string{"", "\xff", "\xe2\x82"}).Draw(t, "tail"),
			})
		}
		text, _ := valueOf(former(m.Append(nil)), historyKey)
		if len(text) > MaxHistory || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Fatalf("%d bytes: %q", len(text), text)
		}
		got, err := parseHistory(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		left := m.History[len(m.History)-len(got):]
		for i, a := range left {
			a.Class, a.Message = classify.CleanClass(a.Class), shown(a.Message)
			if a.Verdict == "NOT ONE" {
				a.Verdict = ""
			}
			if d := cmp.Diff(a, got[i]); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
		}
		if n := len(m.History) - len(got); n > 0 && len(text)+m.History[n-1].size() <= MaxHistory {
			t.Fatalf("%d bytes are written, and another entry of %d would fit", len(text), m.History[n-1].size())
		}
	})
}

// A forged header of nothing but commas asked for a slice of 2,048 entries before its first entry
// was refused. Not parallel: the memory is that of the process.
func TestHistory_ForgedCommasAllocateLittle(t *testing.T) {
	for _, forged := range []string{strings.Repeat(",", MaxHistory), "2" + strings.Repeat(",", MaxHistory-1)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 100 {
			_, _ = parseHistory(forged)
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / 100; n > 36<<10 {
			t.Errorf("%.2q…: %d bytes for a header of %d", forged, n, len(forged))
		}
	}
}
