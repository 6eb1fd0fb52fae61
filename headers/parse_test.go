package headers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

func TestParse_NamesTheInvalidHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, value string
		want       error
	}{
		{Attempts, "-1", ErrRange},
		{Attempts, "1000001", ErrRange},
		{Attempts, "99999999999999999999999999", ErrRange},
		{Attempts, "", ErrSyntax},
		{Attempts, "x", ErrSyntax},
		{Attempts, "+1", ErrSyntax},
		{Attempts, "1.5", ErrSyntax},
		{Attempts, " 1", ErrSyntax},
		{Attempts, "0x1", ErrSyntax},
		{Attempts, "-", ErrSyntax},
		{Hops, "-1", ErrRange},
		{OriginalTopic, "", ErrSyntax},
		{OriginalTopic, "a/b", ErrSyntax},
		{OriginalTopic, "..", ErrSyntax},
		{OriginalTopic, strings.Repeat("t", 250), ErrRange},
		{OriginalTopicID, "short", ErrSyntax},
		{OriginalTopicID, "++++++++++++++++++++++", ErrSyntax},
		{OriginalTopicID, "AAAAAAAAAAAAAAAAAAAAAB", ErrSyntax}, // bits behind the end
		{OriginalPartition, "-1", ErrRange},
		{OriginalPartition, "2147483648", ErrRange},
		{OriginalOffset, "-1", ErrRange},
		{OriginalOffset, "9223372036854775808", ErrRange},
		{OriginalTimestamp, "-9223372036854775809", ErrRange},
		{OriginalTimestamp, "now", ErrSyntax},
		{Group, "", ErrSyntax},
		{Group, "\xff", ErrSyntax},
		{Group, strings.Repeat("g", 40_000), ErrRange},
		{ErrorClass, "", ErrSyntax},
		{ErrorClass, "tax table", ErrSyntax},
		{ErrorClass, strings.Repeat("c", 129), ErrRange},
		{ErrorFingerprint, "0123", ErrSyntax},
		{ErrorFingerprint, "0123456789ABCDEF", ErrSyntax},
		{ErrorFingerprint, "0123456789abcdef0", ErrRange},
		{FailureReason, "no reason", ErrSyntax},
		{FirstFailedAt, "-1", ErrRange},
		{FailedAt, "253402300800000", ErrRange},
		{NotBefore, "tomorrow", ErrSyntax},
		{NotBefore, strconv.Itoa(math.MaxInt64), ErrRange},
		{Held, "1", ErrSyntax},
		{Held, "", ErrSyntax},
		{ValueOmitted, "false", ErrSyntax},
		{History, "", ErrSyntax},
		{History, "1:a", ErrSyntax},
		{History, "1:a:1,", ErrSyntax},
		{History, "1:a:1:1", ErrSyntax},
		{History, "1:a b:1", ErrSyntax},
		{History, "-1:a:1", ErrRange},
		{History, "1:a:99999999999999999", ErrRange},
		{History, strings.Repeat("1:a:1,", 400) + "1:a:1", ErrRange},
		{History, strings.Repeat(",", MaxHistory), ErrSyntax},
		{History, "2" + strings.Repeat(",", MaxHistory-1), ErrSyntax},
		{History, "2", ErrSyntax},
		{History, "2,", ErrSyntax},
		{History, "2,1:a:1", ErrSyntax},
		{History, "2,1:a:1:retry", ErrSyntax},
		{History, "2,1:a:1:Retry:", ErrSyntax},
		{History, "2,1:a:1:" + strings.Repeat("r", 17) + ":", ErrSyntax},
		{History, "2,1.0:a:1:retry:", ErrRange},
		{History, "2,1.:a:1:retry:", ErrSyntax},
		{History, "2,1.1000001:a:1:retry:", ErrRange},
		{History, "2,1.1.1:a:1:retry:", ErrSyntax},
		{History, "3,1:a:1:retry:", ErrSyntax},
		{History, "1.1:a:1", ErrSyntax},
		{History, "2,1:a:1:retry:,", ErrSyntax},
		{RedriveID, "", ErrSyntax},
		{RedriveCount, "-1", ErrRange},
		{RedriveFrom, "orders.dlq", ErrSyntax},
		{RedriveFrom, "orders.dlq/3", ErrSyntax},
		{RedriveFrom, "orders.dlq/3/x", ErrSyntax},
		{RedriveFrom, "orders.dlq/-3/1", ErrRange},
		{RedriveFrom, "/3/1", ErrSyntax},
		{RedriveFrom, "a/1/2/3", ErrSyntax},
		{RedriveOriginal, "orders/3", ErrSyntax},
		{RedriveOriginal, "orders/3/-1", ErrRange},
		{RedriveAt, "now", ErrSyntax},
		{RedriveAt, "-1", ErrRange},
		{RedriveMaxAttempts, "0", ErrRange},
		{RedriveMaxAttempts, "1000001", ErrRange},
	} {
		_, err := Parse(with(tt.key, []byte(tt.value)))
		fe, ok := errors.AsType[*FieldError](err)
		if !ok || fe.Key != tt.key || !errors.Is(err, tt.want) {
			t.Errorf("%s = %.40q: error %v, want %q about this key", tt.key, tt.value, err, tt.want)
			continue
		}
		if len(fe.Value) > 64 || !strings.HasPrefix(tt.value, fe.Value) {
			t.Errorf("%s = %.40q: the error shows %q", tt.key, tt.value, fe.Value)
		}
	}
}

func TestParse_WantsCompleteParts(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		OriginalTopic, OriginalPartition, OriginalOffset, Attempts, RedriveID, RedriveCount, RedriveFrom,
	} {
		_, err := Parse(with(key, nil))
		fe, ok := errors.AsType[*FieldError](err)
		if !ok || fe.Key != key || !errors.Is(err, ErrMissing) {
			t.Errorf("without %s: error %v, want it to be missing", key, err)
		}
	}
	for key := range reserved.Count {
		switch name := key.String(); name {
		case "", OriginalTopic, OriginalPartition, OriginalOffset, Attempts, RedriveID, RedriveCount, RedriveFrom:
		default:
			if _, err := Parse(with(name, nil)); err != nil {
				t.Errorf("without %s: %v, want none", name, err)
			}
		}
	}
}

func TestParse_RefusesDuplicates(t *testing.T) {
	t.Parallel()
	m := full("")
	for _, h := range m.Append(nil) {
		twice := append(m.Append(nil), kgo.RecordHeader{Key: h.Key, Value: []byte("7")})
		got, err := Parse(twice)
		if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Key != h.Key || !errors.Is(err, ErrDuplicate) {
			t.Errorf("%s twice: error %v, want ErrDuplicate", h.Key, err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("%s twice: the first counts (-want +got):\n%s", h.Key, d)
		}
	}
}

// An operator needs all readable headers of a malformed letter.
func TestParse_ReturnsWhatItCouldRead(t *testing.T) {
	t.Parallel()
	want := full("")
	want.Attempts, want.History = 0, nil
	h := with(Attempts, []byte("many"))
	for i := range h {
		if h[i].Key == History {
			h[i].Value = []byte("?")
		}
	}
	got, err := Parse(h)
	if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Key != Attempts {
		t.Errorf("error %v, want the first: %s", err, Attempts)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestParse_LeavesForeignHeadersToTheUser(t *testing.T) {
	t.Parallel()
	for _, h := range [][]kgo.RecordHeader{
		nil,
		{},
		{{Key: "dlq-attempts2", Value: []byte("x")}, {Key: "DLQ-ATTEMPTS", Value: []byte("x")}, {Key: "dlq-"}, {Key: "dlq"}, {Key: ""}},
		{{Key: "dlq-original", Value: []byte("-1")}, {Key: "dlq-error", Value: nil}, {Key: "dlq-redrive-by"}},
	} {
		m, err := Parse(h)
		if err != nil {
			t.Errorf("Parse(%q): %v", keysOf(h), err)
		}
		if d := cmp.Diff(Meta{}, m); d != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", keysOf(h), d)
		}
		if got := Strip(h); len(got) != len(h) {
			t.Errorf("Strip(%q) = %q", keysOf(h), keysOf(got))
		}
	}
}

func TestParse_CutsTextThatIsOnlyShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key   string
		limit int
		get   func(*Meta) string
	}{
		{ErrorMessage, MaxMessage, func(m *Meta) string { return m.Message }},
		{ErrorStack, MaxStack, func(m *Meta) string { return m.Stack }},
		{TraceParent, 256, func(m *Meta) string { return m.TraceParent }},
		{ConsumerVersion, 256, func(m *Meta) string { return m.Version }},
		{Environment, 256, func(m *Meta) string { return m.Environment }},
		{Host, 256, func(m *Meta) string { return m.Host }},
	} {
		m := mustParse(t, with(tt.key, []byte(strings.Repeat("x", 10_000))))
		if got := tt.get(&m); got != strings.Repeat("x", tt.limit) {
			t.Errorf("%s: %d bytes, want the first %d", tt.key, len(got), tt.limit)
		}
		m = mustParse(t, with(tt.key, []byte("a\xffb")))
		if got := tt.get(&m); got != "a\ufffdb" {
			t.Errorf("%s: %q, want valid UTF-8", tt.key, got)
		}
	}
}

// A parked Meta must not retain the bytes of a whole fetch.
func TestParse_DoesNotAliasTheHeaders(t *testing.T) {
	t.Parallel()
	want := full(ReasonPanic)
	h := want.Append(nil)
	got := mustParse(t, h)
	for i := range h {
		for j := range h[i].Value {
			h[i].Value[j] = '!'
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Meta changed with the headers (-want +got):\n%s", d)
	}
}

func TestParseSource_TrustsTheSourcesOwnDLQOnly(t *testing.T) {
	t.Parallel()
	want := Meta{Redrive: full("").Redrive}
	want.Redrive.At = time.Time{}
	good := want.AppendSource([]kgo.RecordHeader{{Key: "user"}})
	read := func(name string, h []kgo.RecordHeader, topic string, want Meta) {
		t.Helper()
		got, ok := ParseSource(h, topic)
		if d := cmp.Diff(want, got); d != "" || ok != (want.Redrive.ID != "") {
			t.Errorf("%s: %v (-want +got):\n%s", name, ok, d)
		}
	}
	read("a run's", good, "orders.dlq", want)
	read("with a broken header that steers nothing", append(clone(good), kgo.RecordHeader{Key: FailedAt, Value: []byte("x")}), "orders.dlq", want)
	read("another topic's DLQ", good, "payments.dlq", Meta{})

	whole := want
	whole.Redrive.Original, whole.Redrive.At, whole.Redrive.MaxAttempts = Position{Topic: "orders", Partition: 3, Offset: 7}, t0, 2
	whole.FirstFailedAt, whole.History = t0, full("").History
	all := whole.AppendSource(nil)
	read("with a story", all, "orders.dlq", whole)
	for name, h := range map[string][]kgo.RecordHeader{
		"none":                      nil,
		"no id":                     good[:1:1],
		"part":                      good[:3:3],
		"duplicate":                 append(clone(good), kgo.RecordHeader{Key: RedriveCount, Value: []byte("2")}),
		"broken":                    append(clone(good[:3]), kgo.RecordHeader{Key: RedriveFrom, Value: []byte("orders.dlq/x/1")}),
		"too long":                  append(clone(good[:3]), kgo.RecordHeader{Key: RedriveFrom, Value: []byte(strings.Repeat("x", 10_000))}),
		"a story without a redrive": all[3:],
	} {
		read(name, h, "orders.dlq", Meta{})
	}
	for _, key := range []string{OriginalTopic, OriginalPartition, OriginalOffset, Attempts, FailureReason} {
		read("copied from a letter with "+key, append(clone(all), kgo.RecordHeader{Key: key, Value: []byte("1")}), "orders.dlq", Meta{})
	}
	epoch := whole
	epoch.Redrive.At, epoch.FirstFailedAt = time.UnixMilli(0), time.UnixMilli(0)
	timeless := whole
	timeless.Redrive.At, timeless.FirstFailedAt, timeless.History = time.Time{}, time.Time{}, nil
	read("with times at the epoch", epoch.AppendSource(nil), "orders.dlq", timeless)

	// Each of the others counts for itself: without what is broken, the rest stays. But no run
	// writes the story without the time of the redrive, and without that time MaxAge would count
	// from a first failure that any producer could make up.
	for key, without := range map[string]func(*Meta){
		RedriveOriginal: func(m *Meta) { m.Redrive.Original = Position{} },
		RedriveAt: func(m *Meta) {
			m.Redrive.At, m.FirstFailedAt, m.History = time.Time{}, time.Time{}, nil
		},
		RedriveMaxAttempts: func(m *Meta) { m.Redrive.MaxAttempts = 0 },
		FirstFailedAt:      func(m *Meta) { m.FirstFailedAt = time.Time{} },
		History:            func(m *Meta) { m.History = nil },
	} {
		want := whole
		without(&want)
		for _, value := range []string{"", "x", "-1", "0,", strings.Repeat(",", MaxHistory), strings.Repeat("x", 10_000)} {
			h := clone(all)
			i := slices.Index(keysOf(h), key)
			h[i].Value = []byte(value)
			read(key+" broken", h, "orders.dlq", want)
			read(key+" twice", append(clone(all), kgo.RecordHeader{Key: key, Value: []byte(value)}), "orders.dlq", want)
		}
	}
}

// testdata/v1 has headers as the first version of the format wrote them, in all variants:
// NAME.headers has a record's headers, NAME.meta their meaning. A later version that writes other
// headers gets a folder of its own, and reads this one too.

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

// headersFrom cuts data into headers: a byte for the key, a byte for the length of the value, the
// value.
func headersFrom(data []byte) (h []kgo.RecordHeader) {
	for len(data) >= 2 {
		k, n := int(data[0])%(int(reserved.Count)+2), int(data[1])
		data = data[2:]
		n = min(n, len(data))
		value := data[:n:n]
		data = data[n:]
		switch {
		case k == 0:
			h = append(h, kgo.RecordHeader{Key: "user", Value: value})
		case k < int(reserved.Count):
			h = append(h, kgo.RecordHeader{Key: reserved.Key(k).String(), Value: value})
		case k == int(reserved.Count):
			h = append(h, kgo.RecordHeader{Key: "dlq-" + string(value)})
		default: // long
			h = append(h, kgo.RecordHeader{Key: ErrorMessage, Value: bytes.Repeat(value, 40)})
		}
	}
	return h
}

// bytesOf is the inverse, for the corpus.
func bytesOf(h []kgo.RecordHeader) (data []byte) {
	for i := range h {
		n := min(len(h[i].Value), 255)
		data = append(data, byte(reserved.Of(h[i].Key)), byte(n))
		data = append(data, h[i].Value[:n]...)
	}
	return data
}

// FuzzParse: no headers cause a panic or are changed, and headers that were read without an error
// are written and read back the same.
func FuzzParse(f *testing.F) {
	for _, m := range goldenCases() {
		f.Add(bytesOf(m.Append(userHeaders())))
	}
	f.Add(bytesOf(with(History, []byte("1:a:1,2:b:2"))))
	f.Add(bytesOf(with(History, []byte("2,1.1:a:1:retry:50%25%2C,2:b:2::%zz%c3"))))
	f.Add(bytesOf(with(Attempts, []byte("-1"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := headersFrom(data)
		before := clone(h)

		m, err := Parse(h)
		var fe *FieldError
		if err != nil && (!errors.As(err, &fe) || !Reserved(fe.Key) || fe.Error() == "") {
			t.Errorf("error %v, want a *FieldError about a reserved key", err)
		}
		if !utf8.ValidString(m.Message) || len(m.Message) > MaxMessage || len(m.Stack) > MaxStack {
			t.Errorf("message %q, stack of %d bytes", m.Message, len(m.Stack))
		}
		if m.Attempts < 0 || m.Attempts > MaxAttempts || m.Original.Partition < 0 || m.Original.Offset < 0 {
			t.Errorf("out of bounds: %+v", m)
		}
		checkErr := m.CheckRetry(t0, time.Hour)
		if checkErr == nil && m.NotBefore.After(t0.Add(time.Hour)) {
			t.Errorf("due at %v", m.NotBefore)
		}
		Strip(h)
		back, _ := ParseSource(h, "orders.dlq")
		if again, _ := ParseSource(back.AppendSource(h), "orders.dlq"); !reflect.DeepEqual(back, again) {
			t.Errorf("written to a source again (-first +again):\n%s", cmp.Diff(back, again))
		}
		letter := Malformed(h, err, t0)
		if got, _ := Parse(letter); got.Reason != ReasonMalformed || !got.FailedAt.Equal(t0) {
			t.Errorf("Malformed has reason %q at %v", got.Reason, got.FailedAt)
		}
		out := m.Append(h)
		if !slices.EqualFunc(before, h, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }) {
			t.Fatalf("input changed (-before +after):\n%s", cmp.Diff(before, h))
		}

		if err != nil {
			return
		}
		again, err := Parse(out)
		if err != nil {
			t.Fatalf("what Append wrote does not parse: %v", err)
		}
		// Reason decides which of these are written.
		if m.Reason == "" {
			m.Stack, m.ValueOmitted = "", false
		} else {
			m.NotBefore, m.Held = time.Time{}, false
		}
		if m.Original.Topic == "" { // parts of a position are not written alone
			m.Original = Position{}
		}
		if !reflect.DeepEqual(m, again) {
			t.Errorf("read again (-first +again):\n%s", cmp.Diff(m, again))
		}
	})
}

// FuzzMeta_RoundTrips: the headers of any Meta are read back without an error and as the same Meta,
// cut to the limits.
func FuzzMeta_RoundTrips(f *testing.F) {
	f.Add("orders", "billing", "timeout", "message", "stack\n", int64(7), int64(1_763_000_000_123), 3, uint8(0))
	f.Add("o", "g", "tax table", strings.Repeat("é", 600), "\xff", int64(-1), int64(-1), -1, uint8(255))
	f.Fuzz(func(t *testing.T, topic, group, class, message, stack string, offset, ms int64, n int, bits uint8) {
		if checkTopic(topic) != nil || group == "" || len(group) > reserved.MaxGroup || !utf8.ValidString(group) {
			return
		}
		at := time.UnixMilli(ms)
		if at.IsZero() {
			return
		}
		m := Meta{
			Original: Position{Topic: topic, Partition: int32(n & 0xffff), Offset: offset & (1<<63 - 1), Timestamp: at},
			Group:    group, Attempts: n, Class: class, Message: message, Stack: stack, Fingerprint: class,
			FirstFailedAt: at, FailedAt: at, NotBefore: at, Hops: n,
			TraceParent: message, Version: stack, Environment: class, Host: message,
			Held: bits&1 != 0, ValueOmitted: bits&2 != 0,
		}
		if bits&4 != 0 {
			m.Reason = ReasonExhausted
		}
		if bits&8 != 0 && utf8.ValidString(class) && class != "" {
			m.Redrive = Redrive{ID: cut(class, 200), Count: n, From: Position{Topic: topic, Partition: 1, Offset: 2}, At: at, MaxAttempts: n}
		}
		for i := range int(bits >> 4) {
			m.History = append(m.History, Attempt{Number: n + i, Run: i, Class: class, At: at, Verdict: topic, Message: message})
		}

		got, err := Parse(m.Append(nil))
		if err != nil {
			t.Fatalf("Parse: %v", err)
		}
		if got.Original != m.Original || got.Group != group || got.Redrive.ID != m.Redrive.ID {
			t.Errorf("identity: got %+v, want %+v", got, m)
		}
		if got.Attempts != clamp(n) || got.Class != classify.CleanClass(class) || got.Reason != m.Reason {
			t.Errorf("attempts %d, class %q, reason %q of %+v", got.Attempts, got.Class, got.Reason, m)
		}
		if utf8.ValidString(message) && len(message) <= MaxMessage && got.Message != message {
			t.Errorf("message %q, want %q", got.Message, message)
		}
		// A value is cut only once.
		again, err := Parse(got.Append(nil))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("a second hop changes it: %v (-first +second):\n%s", err, cmp.Diff(got, again))
		}
		if size := got.Size(); !got.Shrink(size) || got.Shrink(size/2) && got.Size() > size/2 {
			t.Errorf("Shrink: %d bytes of %d", got.Size(), size)
		}
	})
}
