package headers

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

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
		{hopsKey, "-1", ErrRange},
		{OriginalTopic, "", ErrSyntax},
		{OriginalTopic, "a/b", ErrSyntax},
		{OriginalTopic, "..", ErrSyntax},
		{OriginalTopic, strings.Repeat("t", 250), ErrRange},
		{originalTopicIDKey, "short", ErrSyntax},
		{originalTopicIDKey, "++++++++++++++++++++++", ErrSyntax},
		{originalTopicIDKey, "AAAAAAAAAAAAAAAAAAAAAB", ErrSyntax}, // bits behind the end
		{OriginalPartition, "-1", ErrRange},
		{OriginalPartition, "2147483648", ErrRange},
		{OriginalOffset, "-1", ErrRange},
		{OriginalOffset, "9223372036854775808", ErrRange},
		{originalTimestampKey, "-9223372036854775809", ErrRange},
		{originalTimestampKey, "now", ErrSyntax},
		{Group, "", ErrSyntax},
		{Group, "\xff", ErrSyntax},
		{Group, strings.Repeat("g", 40_000), ErrRange},
		{ErrorClass, "", ErrSyntax},
		{ErrorClass, "tax table", ErrSyntax},
		{ErrorClass, strings.Repeat("c", 129), ErrRange},
		{errorFingerprintKey, "0123", ErrSyntax},
		{errorFingerprintKey, "0123456789ABCDEF", ErrSyntax},
		{errorFingerprintKey, "0123456789abcdef0", ErrRange},
		{FailureReason, "no reason", ErrSyntax},
		{firstFailedAtKey, "-1", ErrRange},
		{FailedAt, "253402300800000", ErrRange},
		{NotBefore, "tomorrow", ErrSyntax},
		{NotBefore, strconv.Itoa(math.MaxInt64), ErrRange},
		{heldKey, "1", ErrSyntax},
		{heldKey, "", ErrSyntax},
		{valueOmittedKey, "false", ErrSyntax},
		{historyKey, "", ErrSyntax},
		{historyKey, "1:a", ErrSyntax},
		{historyKey, "1:a:1,", ErrSyntax},
		{historyKey, "1:a:1:1", ErrSyntax},
		{historyKey, "1:a b:1", ErrSyntax},
		{historyKey, "-1:a:1", ErrRange},
		{historyKey, "1:a:99999999999999999", ErrRange},
		{historyKey, strings.Repeat("1:a:1,", 400) + "1:a:1", ErrRange},
		{historyKey, strings.Repeat(",", MaxHistory), ErrSyntax},
		{historyKey, "2" + strings.Repeat(",", MaxHistory-1), ErrSyntax},
		{historyKey, "2", ErrSyntax},
		{historyKey, "2,", ErrSyntax},
		{historyKey, "2,1:a:1", ErrSyntax},
		{historyKey, "2,1:a:1:retry", ErrSyntax},
		{historyKey, "2,1:a:1:Retry:", ErrSyntax},
		{historyKey, "2,1:a:1:" + strings.Repeat("r", 17) + ":", ErrSyntax},
		{historyKey, "2,1.0:a:1:retry:", ErrRange},
		{historyKey, "2,1.:a:1:retry:", ErrSyntax},
		{historyKey, "2,1.1000001:a:1:retry:", ErrRange},
		{historyKey, "2,1.1.1:a:1:retry:", ErrSyntax},
		{historyKey, "3,1:a:1:retry:", ErrSyntax},
		{historyKey, "1.1:a:1", ErrSyntax},
		{historyKey, "2,1:a:1:retry:,", ErrSyntax},
		{redriveIDKey, "", ErrSyntax},
		{redriveCountKey, "-1", ErrRange},
		{redriveFromKey, "orders.dlq", ErrSyntax},
		{redriveFromKey, "orders.dlq/3", ErrSyntax},
		{redriveFromKey, "orders.dlq/3/x", ErrSyntax},
		{redriveFromKey, "orders.dlq/-3/1", ErrRange},
		{redriveFromKey, "/3/1", ErrSyntax},
		{redriveFromKey, "a/1/2/3", ErrSyntax},
		{redriveOriginalKey, "orders/3", ErrSyntax},
		{redriveOriginalKey, "orders/3/-1", ErrRange},
		{redriveAtKey, "now", ErrSyntax},
		{redriveAtKey, "-1", ErrRange},
		{redriveMaxAttemptsKey, "0", ErrRange},
		{redriveMaxAttemptsKey, "1000001", ErrRange},
	} {
		h := with(tt.key, []byte(tt.value))
		_, err := Parse(h)
		fe, ok := errors.AsType[*FieldError](err)
		if !ok || fe.Key != tt.key || !errors.Is(err, tt.want) {
			t.Errorf("%s = %.40q: error %v, want %q about this key", tt.key, tt.value, err, tt.want)
			continue
		}
		if len(fe.Value) > 64 || !strings.HasPrefix(tt.value, fe.Value) {
			t.Errorf("%s = %.40q: the error shows %q", tt.key, tt.value, fe.Value)
		}

		_, err = Parse(gathered(h))
		if field := reserved.Of(tt.key).FieldName(); field != "" {
			fe, ok := errors.AsType[*FieldError](err)
			if !ok || fe.Key != MetaFields || !errors.Is(err, tt.want) || !strings.HasPrefix(fe.Value, field+"=") || len(fe.Value) > 100 {
				t.Errorf("field %s = %.40q: error %v, want %q about this field", field, tt.value, err, tt.want)
			}
		} else if got, ok := errors.AsType[*FieldError](err); !ok || *got != *fe {
			t.Errorf("%s = %.40q beside fields: error %v, want %v", tt.key, tt.value, err, fe)
		}
	}
}

func TestParse_WantsCompleteParts(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		OriginalTopic, OriginalPartition, OriginalOffset, Attempts, redriveIDKey, redriveCountKey, redriveFromKey,
	} {
		_, err := Parse(with(key, nil))
		fe, ok := errors.AsType[*FieldError](err)
		if !ok || fe.Key != key || !errors.Is(err, ErrMissing) {
			t.Errorf("without %s: error %v, want it to be missing", key, err)
		}
		want := FieldError{Key: key, Err: ErrMissing}
		if field := reserved.Of(key).FieldName(); field != "" {
			want.Key, want.Value = MetaFields, field
		}
		_, err = Parse(gathered(with(key, nil)))
		if got, ok := errors.AsType[*FieldError](err); !ok || *got != want {
			t.Errorf("without %s beside fields: error %v, want %v", key, err, &want)
		}
	}
	for key := range reserved.Count {
		switch name := key.String(); name {
		case "", OriginalTopic, OriginalPartition, OriginalOffset, Attempts, redriveIDKey, redriveCountKey, redriveFromKey:
		default:
			for _, h := range [][]kgo.RecordHeader{with(name, nil), gathered(with(name, nil))} {
				if _, err := Parse(h); err != nil {
					t.Errorf("without %s: %v, want none", name, err)
				}
			}
		}
	}
}

func TestParse_RefusesDuplicates(t *testing.T) {
	t.Parallel()
	m := full("")
	written := m.Append(nil)
	check := func(key string, twice []kgo.RecordHeader, want string) {
		t.Helper()
		got, err := Parse(twice)
		if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Key != want || !errors.Is(err, ErrDuplicate) {
			t.Errorf("%s twice: error %v, want ErrDuplicate about %s", key, err, want)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("%s twice: the first counts (-want +got):\n%s", key, d)
		}
	}
	for _, h := range written {
		check(h.Key, append(clone(written), kgo.RecordHeader{Key: h.Key, Value: []byte("7")}), h.Key)
	}
	for _, h := range former(written) {
		again := kgo.RecordHeader{Key: h.Key, Value: []byte("7")}
		check(h.Key, append(former(written), again), h.Key)
		if reserved.Of(h.Key).FieldName() != "" {
			check("field "+h.Key, gathered(append(former(written), again)), MetaFields)
			check("header and field "+h.Key, append(clone(written), again), MetaFields)
		}
	}
}

// A later version's fields go on with the record, in a copy as in a letter.
func TestParse_KeepsFieldsOfLaterVersions(t *testing.T) {
	t.Parallel()
	const later = "a=1;b.c=x%3By;"
	m := full("")
	h := m.Append(nil)
	meta := &h[len(h)-1].Value
	*meta = append([]byte("a=1;"), append(*meta, "b.c=x%3By;"...)...)
	got := mustParse(t, h)
	if got.Unknown != later {
		t.Errorf("unknown fields %q, want %q", got.Unknown, later)
	}
	got.Unknown = ""
	if d := cmp.Diff(m, got); d != "" {
		t.Errorf("the known ones (-want +got):\n%s", d)
	}
	got.Unknown = later
	for _, reason := range []Reason{"", ReasonTerminal} {
		got.Reason = reason
		if again := mustParse(t, got.Append(nil)).Unknown; again != later {
			t.Errorf("reason %q: written and read again: %q", reason, again)
		}
	}
	*meta = append(*meta, strings.Repeat("a=1;", maxUnknown/4)...)
	if _, err := Parse(h); !errors.Is(err, ErrRange) {
		t.Errorf("more unknown fields than a record may have: %v", err)
	}
}

func TestParse_RefusesWhatIsNoField(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "hops=1", ";", "=1;", "hops;", "hops;=1", "hops=1;;", "hops=1;x", strings.Repeat("n", 17) + "=1;", "hops=1;\x00"} {
		_, err := Parse([]kgo.RecordHeader{{Key: MetaFields, Value: []byte(text)}})
		if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Key != MetaFields || !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: error %v, want ErrSyntax", text, err)
		}
	}
	if m, err := Parse([]kgo.RecordHeader{{Key: MetaFields}}); err != nil || !reflect.DeepEqual(m, Meta{}) {
		t.Errorf("no field at all: %v", err)
	}
}

// An operator needs all readable headers of a malformed letter.
func TestParse_ReturnsWhatItCouldRead(t *testing.T) {
	t.Parallel()
	want := full("")
	want.Attempts, want.History = 0, nil
	h := with(Attempts, []byte("many"))
	for i := range h {
		if h[i].Key == historyKey {
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
		{traceParentKey, 256, func(m *Meta) string { return m.TraceParent }},
		{consumerVersionKey, 256, func(m *Meta) string { return m.Version }},
		{environmentKey, 256, func(m *Meta) string { return m.Environment }},
		{hostKey, 256, func(m *Meta) string { return m.Host }},
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
	good := former(want.AppendSource([]kgo.RecordHeader{{Key: "user"}}))
	read := func(name string, h []kgo.RecordHeader, topic string, want Meta) {
		t.Helper()
		for format, h := range map[string][]kgo.RecordHeader{"in headers": h, "in fields": gathered(h)} {
			got, ok := ParseSource(h, topic)
			if d := cmp.Diff(want, got); d != "" || ok != (want.Redrive.ID != "") {
				t.Errorf("%s, %s: %v (-want +got):\n%s", name, format, ok, d)
			}
		}
	}
	read("a run's", good, "orders.dlq", want)
	read("with a broken header that steers nothing", append(clone(good), kgo.RecordHeader{Key: FailedAt, Value: []byte("x")}), "orders.dlq", want)
	read("another topic's DLQ", good, "payments.dlq", Meta{})

	whole := want
	whole.Redrive.Original, whole.Redrive.At, whole.Redrive.MaxAttempts = Position{Topic: "orders", Partition: 3, Offset: 7}, t0, 2
	whole.FirstFailedAt, whole.History = t0, full("").History
	all := former(whole.AppendSource(nil))
	read("with a story", all, "orders.dlq", whole)
	for name, h := range map[string][]kgo.RecordHeader{
		"none":                      nil,
		"no id":                     good[:1:1],
		"part":                      good[:3:3],
		"duplicate":                 append(clone(good), kgo.RecordHeader{Key: redriveCountKey, Value: []byte("2")}),
		"broken":                    append(clone(good[:3]), kgo.RecordHeader{Key: redriveFromKey, Value: []byte("orders.dlq/x/1")}),
		"too long":                  append(clone(good[:3]), kgo.RecordHeader{Key: redriveFromKey, Value: []byte(strings.Repeat("x", 10_000))}),
		"a story without a redrive": all[:2:2],
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
	read("with times at the epoch", former(epoch.AppendSource(nil)), "orders.dlq", timeless)

	// Each of the others counts for itself: without what is broken, the rest stays. But no run
	// writes the story without the time of the redrive, and without that time MaxAge would count
	// from a first failure that any producer could make up.
	for key, without := range map[string]func(*Meta){
		redriveOriginalKey: func(m *Meta) { m.Redrive.Original = Position{} },
		redriveAtKey: func(m *Meta) {
			m.Redrive.At, m.FirstFailedAt, m.History = time.Time{}, time.Time{}, nil
		},
		redriveMaxAttemptsKey: func(m *Meta) { m.Redrive.MaxAttempts = 0 },
		firstFailedAtKey:      func(m *Meta) { m.FirstFailedAt = time.Time{} },
		historyKey:            func(m *Meta) { m.History = nil },
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
