package headers

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	retryOnly, dlqOnly := []string{NotBefore, heldKey}, []string{FailureReason, ErrorStack, valueOmittedKey}

	letter := former(m.Append(nil))
	m.Reason = ""
	parked := former(m.Append(nil))
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
	if n := len(letter) + len(retryOnly); n != int(reserved.Count)-2 {
		t.Errorf("%d values are written, want %d: does Append omit a new one?", n, reserved.Count-2)
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
	h, _ := valueOf(former(m.Append(nil)), historyKey)
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
	got := keysOf(former(m.AppendSource(letter)))
	want := []string{"user", firstFailedAtKey, historyKey, redriveIDKey, redriveCountKey, redriveFromKey, redriveAtKey}
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	m.Redrive = Redrive{}
	if got := m.AppendSource(letter); len(got) != 1 {
		t.Errorf("keys %q of no redrive, want the user's only", keysOf(got))
	}
}

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// goldenCases are typical records. Their files have the headers that this version writes, byte for
// byte. Older versions meet a change here when both run, or after a rollback. The former headers go
// to the corpus, which every later version reads.
func goldenCases() map[string]Meta {
	first := Meta{
		Original:      Position{Topic: "orders", Partition: 3, Offset: 1045, Timestamp: t0.Add(-time.Minute)},
		Group:         "billing",
		Attempts:      1,
		Class:         "payment.busy",
		Message:       "charge order 7: payment provider is busy",
		Fingerprint:   "91b7a5c60d1f2e38",
		FirstFailedAt: t0,
		FailedAt:      t0,
		NotBefore:     t0.Add(5 * time.Second),
		Hops:          1,
		History:       []Attempt{{Number: 1, Class: "payment.busy", At: t0, Verdict: "retry", Message: "charge order 7: payment provider is busy"}},
	}
	held := first
	held.Attempts, held.Class, held.Message, held.Fingerprint = 0, "", "", ""
	held.FirstFailedAt, held.FailedAt, held.History = time.Time{}, time.Time{}, nil
	held.Held = true

	terminal := first
	terminal.Reason, terminal.NotBefore, terminal.Hops = ReasonTerminal, time.Time{}, 2
	terminal.Message = "Größe 7 „überschritten“\n\t😀"

	redriven := held
	redriven.Held = false
	redriven.Redrive = full("").Redrive
	redriven.Original.Timestamp = time.UnixMilli(-1)
	redriven.Redrive.MaxAttempts = 3
	redriven.FirstFailedAt, redriven.History = t0, full("").History

	returned := terminal
	returned.Redrive = redriven.Redrive
	returned.Redrive.Original = Position{Topic: "orders", Partition: 3, Offset: 7}

	return map[string]Meta{
		"retry-first":    first,
		"retry-held":     held,
		"retry-redriven": redriven,
		"retry-all":      full(""),
		"dlq-terminal":   terminal,
		"dlq-all":        full(ReasonPanic),
		"dlq-returned":   returned,
		"dlq-no-source":  {Group: "ingest", Reason: ReasonDecode, Class: "decode", FailedAt: t0, FirstFailedAt: t0},
	}
}

func goldenFile(name string) string { return filepath.Join("testdata", name+".golden") }

// goldenText is one header a line, its value quoted as in Go.
func goldenText(h []kgo.RecordHeader) []byte {
	var b bytes.Buffer
	for i := range h {
		fmt.Fprintf(&b, "%s %s\n", h[i].Key, strconv.QuoteToASCII(string(h[i].Value)))
	}
	return b.Bytes()
}

func readGolden(t *testing.T, name string) []kgo.RecordHeader {
	t.Helper()
	return readHeaders(t, goldenFile(name))
}

func readHeaders(t *testing.T, file string) []kgo.RecordHeader {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var h []kgo.RecordHeader
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, quoted, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %s: %v", file, lines.Text(), err)
		}
		h = append(h, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	return h
}

func checkGolden(t *testing.T, name string, h []kgo.RecordHeader) {
	t.Helper()
	got := goldenText(h)
	if *update {
		if err := os.WriteFile(goldenFile(name), got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile(name))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s: the format has changed (-want +got):\n%s", name, d)
	}
}

func TestAppend_GivesTheGoldenFiles(t *testing.T) {
	t.Parallel()
	cases := goldenCases()
	for name, m := range cases {
		checkGolden(t, name, m.Append(nil))
		if d := cmp.Diff(m, mustParse(t, readGolden(t, name))); d != "" {
			t.Errorf("%s read (-want +got):\n%s", name, d)
		}
	}

	back := Meta{Redrive: full("").Redrive}
	for _, name := range []string{"source-redriven", "source-returned"} {
		checkGolden(t, name, back.AppendSource(nil))
		if got, ok := ParseSource(readGolden(t, name), "orders.dlq"); !ok || !cmp.Equal(got, back) {
			t.Errorf("%s read: %v\n%s", name, ok, cmp.Diff(back, got))
		}
		back.Redrive.Original, back.Redrive.MaxAttempts = Position{Topic: "orders", Partition: 3, Offset: 7}, 2
		back.FirstFailedAt, back.History = t0, full("").History
	}

	found := with(Attempts, []byte("-1"))
	_, err := Parse(found)
	checkGolden(t, "dlq-malformed", Malformed(found, err, t0.Add(time.Hour)))

	files, err := filepath.Glob(goldenFile("*"))
	if err != nil || len(files) != len(cases)+3 {
		t.Errorf("%d golden files, want %d: has one been taken away? (%v)", len(files), len(cases)+3, err)
	}
}
