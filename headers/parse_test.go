package headers

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// with returns the headers of a valid retry copy with one value changed, or removed if value is
// nil.
func with(key string, value []byte) []kgo.RecordHeader {
	m := full("")
	var out []kgo.RecordHeader
	found := false
	for _, h := range m.Append([]kgo.RecordHeader{{Key: "user", Value: []byte("x")}}) {
		if h.Key == key {
			found = true
			if value == nil {
				continue
			}
			h.Value = value
		}
		out = append(out, h)
	}
	if !found && value != nil {
		out = append(out, kgo.RecordHeader{Key: key, Value: value})
	}
	return out
}

func TestParseNamesTheHeaderThatIsWrong(t *testing.T) {
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

func TestParseWantsCompleteParts(t *testing.T) {
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
	for key := range numKeys {
		switch name := keyNames[key]; name {
		case "", OriginalTopic, OriginalPartition, OriginalOffset, Attempts, RedriveID, RedriveCount, RedriveFrom:
		default:
			if _, err := Parse(with(name, nil)); err != nil {
				t.Errorf("without %s: %v, want none", name, err)
			}
		}
	}
}

func TestParseRefusesDuplicates(t *testing.T) {
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
func TestParseReturnsWhatItCouldRead(t *testing.T) {
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

func TestForeignHeadersAreTheUsers(t *testing.T) {
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

func TestParseCutsTextThatIsOnlyShown(t *testing.T) {
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
func TestMetaDoesNotAliasTheHeaders(t *testing.T) {
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

func TestParseInt(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, 1 << 40} {
		got, err := parseInt(strconv.FormatInt(n, 10), math.MinInt64, math.MaxInt64)
		if got != n || err != nil {
			t.Errorf("parseInt(%d) = %d, %v", n, got, err)
		}
	}
	for _, s := range []string{"9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", strings.Repeat("9", 100)} {
		if got, err := parseInt(s, math.MinInt64, math.MaxInt64); !errors.Is(err, ErrRange) || got != 0 {
			t.Errorf("parseInt(%s) = %d, %v; want ErrRange", s, got, err)
		}
	}
}

// A forged or broken due time must neither run a record early nor park it for ever.
func TestCheckRetryBelievesOnlyWhatATierCanHold(t *testing.T) {
	t.Parallel()
	const retention = 7 * 24 * time.Hour
	written := t0
	for _, tt := range []struct {
		name string
		edit func(*Meta)
		key  string
		err  error
	}{
		{"good", func(*Meta) {}, "", nil},
		{"due long ago", func(m *Meta) { m.NotBefore = time.UnixMilli(0) }, "", nil},
		{"due at the last moment", func(m *Meta) { m.NotBefore = written.Add(retention) }, "", nil},
		{"due a moment later", func(m *Meta) { m.NotBefore = written.Add(retention + time.Millisecond) }, NotBefore, ErrRange},
		{"due in the year 9999", func(m *Meta) { m.NotBefore = time.UnixMilli(maxMillis) }, NotBefore, ErrRange},
		{"no due time", func(m *Meta) { m.NotBefore = time.Time{} }, NotBefore, ErrMissing},
		{"no origin", func(m *Meta) { m.Original = Position{} }, OriginalTopic, ErrMissing},
		{"no group", func(m *Meta) { m.Group = "" }, Group, ErrMissing},
		{"failed without a class", func(m *Meta) { m.Class = "" }, ErrorClass, ErrMissing},
		{"failed at no time", func(m *Meta) { m.FailedAt = time.Time{} }, FailedAt, ErrMissing},
		{"first failed at no time", func(m *Meta) { m.FirstFailedAt = time.Time{} }, FirstFailedAt, ErrMissing},
		{"redriven, never failed since", func(m *Meta) {
			m.Attempts, m.Class, m.FailedAt, m.FirstFailedAt = 0, "", time.Time{}, time.Time{}
		}, "", nil},
	} {
		m := full("")
		tt.edit(&m)
		err := m.CheckRetry(written, retention)
		if tt.err == nil {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Key != tt.key || !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v, want %q about %s", tt.name, err, tt.err, tt.key)
		}
	}
	m := full("")
	m.NotBefore = time.UnixMilli(maxMillis)
	if err := m.CheckRetry(written, 0); err != nil {
		t.Errorf("unlimited retention: %v", err)
	}
}

func TestFieldErrorReads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  FieldError
		want string
	}{
		{FieldError{Key: Attempts, Value: "-1", Err: ErrRange}, `header dlq-attempts: "-1" is out of bounds`},
		{FieldError{Key: Group, Err: ErrMissing}, `header dlq-group: missing`},
		{FieldError{Key: Host, Value: "\xff", Err: ErrDuplicate}, `header dlq-host: "\xff" is duplicated`},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %s, want %s", got, tt.want)
		}
	}
}

func TestSourceRedriveTrustsOnlyTheSourcesOwnDLQ(t *testing.T) {
	t.Parallel()
	want := full("").Redrive
	good := want.Append([]kgo.RecordHeader{{Key: "user"}})
	if got, ok := SourceRedrive(good, "orders.dlq"); !ok || got != want {
		t.Errorf("SourceRedrive = %+v, %v; want %+v", got, ok, want)
	}
	if _, ok := SourceRedrive(append(good, kgo.RecordHeader{Key: Attempts, Value: []byte("x")}), "orders.dlq"); !ok {
		t.Error("a broken header that steers nothing hides the redrive")
	}
	for name, h := range map[string][]kgo.RecordHeader{
		"none":      nil,
		"no id":     good[:1:1],
		"part":      good[:3:3],
		"duplicate": append(clone(good), kgo.RecordHeader{Key: RedriveCount, Value: []byte("2")}),
		"broken":    append(clone(good[:3]), kgo.RecordHeader{Key: RedriveFrom, Value: []byte("orders.dlq/x/1")}),
		"too long":  append(clone(good[:3]), kgo.RecordHeader{Key: RedriveFrom, Value: []byte(strings.Repeat("x", 10_000))}),
	} {
		if got, ok := SourceRedrive(h, "orders.dlq"); ok || got != (Redrive{}) {
			t.Errorf("%s: SourceRedrive = %+v, %v; want none", name, got, ok)
		}
	}
	returned := want
	returned.Original = Position{Topic: "orders", Partition: 3, Offset: 7}
	whole := returned.Append(nil)
	if got, ok := SourceRedrive(whole, "orders.dlq"); !ok || got != returned {
		t.Errorf("SourceRedrive = %+v, %v; want %+v", got, ok, returned)
	}
	for name, h := range map[string][]kgo.RecordHeader{
		"broken":   append(clone(whole[:3]), kgo.RecordHeader{Key: RedriveOriginal, Value: []byte("orders/3/-7")}),
		"twice":    append(clone(whole), whole[3]),
		"too long": append(clone(whole[:3]), kgo.RecordHeader{Key: RedriveOriginal, Value: []byte(strings.Repeat("x", 10_000))}),
	} {
		if got, ok := SourceRedrive(h, "orders.dlq"); !ok || got != want {
			t.Errorf("%s original: SourceRedrive = %+v, %v; want %+v, without it", name, got, ok, want)
		}
	}
	if got, ok := SourceRedrive(whole[3:], "orders.dlq"); ok || got != (Redrive{}) {
		t.Errorf("an original alone: SourceRedrive = %+v, %v; want none", got, ok)
	}
	if got, ok := SourceRedrive(good, "payments.dlq"); ok || got != (Redrive{}) {
		t.Errorf("another topic's DLQ: SourceRedrive = %+v, %v; want none", got, ok)
	}
}
