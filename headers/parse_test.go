package headers

import (
	"errors"
	"math"
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
