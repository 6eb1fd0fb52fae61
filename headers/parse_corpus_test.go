package headers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
)

// meaning returns one line for each header's value, under names that differ from those of Go's
// fields: the fields may change, the files may not. Missing fields have no line, so that a later
// version may read more from its own headers.
func meaning(h []kgo.RecordHeader) string {
	m, err := Parse(h)
	var b strings.Builder
	line := func(name string, there bool, what string) {
		if there {
			fmt.Fprintln(&b, name, what)
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			fmt.Fprintln(&b, name, t.UnixMilli())
		}
	}
	text := func(name, s string) { line(name, s != "", fmt.Sprintf("%+q", s)) }

	var field *FieldError
	if errors.As(err, &field) {
		line("broken", true, field.Key)
	}
	line("original", m.Original.Topic != "", m.Original.String())
	line("original-topic-id", m.Original.TopicID != [16]byte{}, hex.EncodeToString(m.Original.TopicID[:]))
	at("original-timestamp", m.Original.Timestamp)
	text("group", m.Group)
	line("attempts", m.Original.Topic != "", fmt.Sprint(m.Attempts))
	text("class", m.Class)
	text("message", m.Message)
	text("fingerprint", m.Fingerprint)
	text("stack", m.Stack)
	text("reason", string(m.Reason))
	at("first-failed-at", m.FirstFailedAt)
	at("failed-at", m.FailedAt)
	at("not-before", m.NotBefore)
	for _, a := range m.History {
		line("failure", true, fmt.Sprint(a.Number, " ", a.Class, " ", a.At.UnixMilli()))
		line("failure-run", a.Run > 0, fmt.Sprint(a.Run))
		text("failure-verdict", a.Verdict)
		text("failure-message", a.Message)
	}
	line("redrive", m.Redrive != (Redrive{}), fmt.Sprint(m.Redrive.ID, " ", m.Redrive.Count, " ", m.Redrive.From))
	at("redrive-at", m.Redrive.At)
	line("redrive-max-attempts", m.Redrive.MaxAttempts > 0, fmt.Sprint(m.Redrive.MaxAttempts))
	line("redrive-original", m.Redrive.Original != (Position{}), m.Redrive.Original.String())
	text("traceparent", m.TraceParent)
	line("held", m.Held, "true")
	line("value-omitted", m.ValueOmitted, "true")
	line("hops", m.Hops > 0, fmt.Sprint(m.Hops))
	text("version", m.Version)
	text("environment", m.Environment)
	text("host", m.Host)
	for _, h := range Strip(h) {
		line("user", true, fmt.Sprintf("%s %+q", h.Key, h.Value))
	}
	return b.String()
}

func corpus(t *testing.T) (files []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "v[0-9]*", "*.headers"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	return files
}

// A record may wait in a retry topic, and a dead letter lie for years, while the service goes from
// version to version.
func TestParse_ReadsWhatEveryVersionWrote(t *testing.T) {
	t.Parallel()
	for _, file := range corpus(t) {
		h := readHeaders(t, file)
		got, meta := meaning(h), strings.TrimSuffix(file, ".headers")+".meta"
		if _, err := os.Stat(meta); *update && errors.Is(err, os.ErrNotExist) { // never overwritten
			if err := os.WriteFile(meta, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(meta)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s is read otherwise (-want +got):\n%s", file, d)
		}
		m, err := Parse(h)
		if name := filepath.Base(file); strings.HasPrefix(name, "retry-") {
			if err == nil {
				err = m.CheckRetry(m.NotBefore.Add(-time.Hour), 7*24*time.Hour)
			}
			if err != nil {
				t.Errorf("%s is not believed on a retry topic: %v", file, err)
			}
		} else if strings.HasPrefix(name, "source-") {
			if r, ok := ParseSource(h, m.Redrive.From.Topic); !ok || !cmp.Equal(r, m) {
				t.Errorf("%s does not count on its source: %+v, %v", file, r, ok)
			}
		}
	}
}

func TestParse_CorpusHasEveryKeyAndReason(t *testing.T) {
	t.Parallel()
	keys, reasons := map[string]bool{}, map[Reason]bool{}
	for _, file := range corpus(t) {
		h := readHeaders(t, file)
		for i := range h {
			keys[h[i].Key] = true
		}
		m, _ := Parse(h) // broken ones say theirs too
		reasons[m.Reason] = true
	}
	for k := reserved.User + 1; k < reserved.Count; k++ {
		key := k.String()
		if !keys[key] {
			t.Errorf("no file has %s", key)
		}
	}
	for _, r := range []Reason{
		ReasonCrashLoop, ReasonPanic, ReasonMalformed, ReasonUnsupportedVersion, ReasonDecode, ReasonUnroutable, ReasonTooLarge, ReasonHeld, ReasonExpired, ReasonExhausted,
		ReasonTerminal,
	} {
		if !reasons[r] {
			t.Errorf("no file has reason %s", r)
		}
	}
}

// Written records cannot be written again, so the files that represent them are never edited or
// removed.
func TestParse_CorpusIsOnlyAddedTo(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join("testdata", "v[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(folder, "*.[hm]e*"))
		if err != nil {
			t.Fatal(err)
		}
		var sums bytes.Buffer
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), filepath.Base(name))
		}
		list := filepath.Join(folder, "SHA256SUMS")
		noted, err := os.ReadFile(list)
		if err != nil && !*update {
			t.Fatal(err)
		}
		now := strings.SplitAfter(sums.String(), "\n")
		for line := range strings.Lines(string(noted)) {
			if !slices.Contains(now, line) {
				t.Errorf("%s: a file was edited or taken away, which breaks the promise to read it: %s", list, line)
			}
		}
		if *update && !t.Failed() {
			if err := os.WriteFile(list, sums.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if len(noted) < sums.Len() {
			t.Errorf("%s lacks files that were added: go test -run Corpus -update", list)
		}
	}
}
