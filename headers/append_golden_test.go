package headers

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

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
