package oversize

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

var at = time.UnixMilli(1_700_000_000_000)

func story(reason headers.Reason) *headers.Meta {
	m := &headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: 3, Offset: 7, Timestamp: at}, Group: "billing", Attempts: 2, Class: "busy",
		Message: "busy, sorry", Reason: reason, FirstFailedAt: at, FailedAt: at, Hops: 2, History: []headers.Attempt{{Number: 1, Class: "busy", At: at}},
	}
	if reason == "" {
		m.NotBefore, m.Held = at, true
	} else {
		m.Stack = "main.handle\n"
	}
	return m
}

var user = []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "dlq-mine"}, {Key: "a", Value: []byte("2")}}

func TestStep_DropsTheLeastImportantFirst(t *testing.T) {
	t.Parallel()
	plain := story(headers.ReasonExhausted)
	plain.History, plain.Stack, plain.Message = nil, "", ""
	for name, tt := range map[string]struct {
		h     []kgo.RecordHeader
		value string
		omit  bool
		want  []Step
	}{
		"a copy for a tier":             {story("").Append(user), "v", false, []Step{Shrunk}},
		"a copy with nothing to shrink": {user, "v", false, nil},
		"a dead letter":                 {story(headers.ReasonExhausted).Append(user), "v", true, []Step{Shrunk, Omitted, Bare}},
		"one with nothing to shrink":    {plain.Append(user), "v", true, []Step{Omitted}},
		"one without a value":           {story(headers.ReasonExhausted).Append(user), "", true, []Step{Shrunk}},
		"one whose value is nowhere":    {story(headers.ReasonExhausted).Append(user), "v", false, []Step{Shrunk}},
		"nothing at all":                {nil, "", true, nil},
	} {
		var got []Step
		for s, more := Whole.Next(tt.h, []byte(tt.value), tt.omit); more; s, more = s.Next(tt.h, []byte(tt.value), tt.omit) {
			got = append(got, s)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: steps %v, want %v", name, got, tt.want)
		}
	}
}

func TestStep_LeavesTheSameRecord(t *testing.T) {
	t.Parallel()
	h := story(headers.ReasonPanic).Append(user)
	before := cmp.Diff(h, nil)
	for step, want := range map[Step]func(m *headers.Meta) string{
		Whole:   func(*headers.Meta) string { return "value" },
		Shrunk:  func(m *headers.Meta) string { m.History, m.Stack, m.Message = nil, "", ""; return "value" },
		Omitted: func(m *headers.Meta) string { m.ValueOmitted = true; return "" },
		Bare: func(m *headers.Meta) string {
			m.ValueOmitted = true
			m.History, m.Stack, m.Message = nil, "", ""
			return ""
		},
	} {
		m := story(headers.ReasonPanic)
		value := want(m)
		gotH, gotValue := step.Of(h, []byte("value"))
		got, err := headers.Parse(gotH)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(*m, got); d != "" {
			t.Errorf("step %d (-want +got):\n%s", step, d)
		}
		if d := cmp.Diff(user, headers.Strip(gotH)); d != "" {
			t.Errorf("step %d changed the user's headers:\n%s", step, d)
		}
		if string(gotValue) != value || step.Omits() != (gotValue == nil) {
			t.Errorf("step %d has value %q, omits %v", step, gotValue, step.Omits())
		}
	}
	if cmp.Diff(h, nil) != before {
		t.Error("the headers given were changed")
	}
}

func TestStep_LetterOfATiersCopySaysWhyNotWhen(t *testing.T) {
	t.Parallel()
	want := story("")
	want.Reason, want.NotBefore, want.Held = headers.ReasonTooLarge, time.Time{}, false
	h := Letter(story("").Append(user))
	got, err := headers.Parse(h)
	if d := cmp.Diff(*want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff(user, headers.Strip(h)); d != "" {
		t.Errorf("the user's headers:\n%s", d)
	}
}

// A record with invalid headers is written unchanged, except for the dropped parts.
func TestStep_ShrinksBrokenHeadersToo(t *testing.T) {
	t.Parallel()
	found := []kgo.RecordHeader{{Key: reserved.ValueOmitted.String(), Value: []byte("perhaps")}, {Key: "a"}, {Key: headers.Attempts, Value: []byte("-1")}, {Key: headers.Attempts}}
	h, value := Bare.Of(headers.Malformed(found, fmt.Errorf("%s is wrong", headers.Attempts), at), []byte("v"))
	var keys []string
	for _, h := range h {
		keys = append(keys, h.Key+"="+string(h.Value))
	}
	want := "a= dlq-attempts=-1 dlq-attempts= dlq-error-class=malformed dlq-reason=malformed dlq-failed-at=1700000000000 dlq-meta=omitted=true;"
	if got := strings.Join(keys, " "); got != want || value != nil {
		t.Errorf("headers are\n%s, want\n%s; value %q", got, want, value)
	}
}

// A redrive to a named topic takes letters with broken headers too. Without the mark, the record
// that it writes has no value.
func TestStep_MarksAnOmittedValueInBrokenFields(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{"", "broken", "broken;", "=1;", "hops=1", "env=x;omitted=false;broken=1", "omitted=true;omitted=true;", strings.Repeat("x", 17) + "=1;env=x;"} {
		for _, s := range []Step{Omitted, Bare} {
			h, _ := s.Of(headers.Malformed([]kgo.RecordHeader{{Key: headers.MetaFields, Value: []byte(fields)}}, nil, at), []byte("v"))
			if m, _ := headers.Parse(h); !m.ValueOmitted {
				t.Errorf("step %d of %q gives %q, which do not say that the value is omitted", s, fields, h)
			}
		}
	}
}

func TestRefused_MeansForItsSizeOnly(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		nil: false, kerr.MessageTooLarge: true, kerr.RecordListTooLarge: true, fmt.Errorf("%w (uncompressed_bytes=7)", kerr.MessageTooLarge): true,
		kerr.TopicAuthorizationFailed: false, kerr.OffsetMetadataTooLarge: false, kgo.ErrMaxBuffered: false, kerr.InvalidRecord: false,
	} {
		if got := Refused(err); got != want {
			t.Errorf("Refused(%v) = %v", err, got)
		}
	}
}

// Whatever the headers are, the steps end, none of them loses a header or a value that is the
// user's, and each has fewer bytes than the copy itself, but for the mark of an omitted value.
func FuzzStep_LosesNothingOfTheUsers(f *testing.F) {
	for _, h := range [][]kgo.RecordHeader{user, story("").Append(user), story(headers.ReasonExhausted).Append(user)} {
		var text strings.Builder
		for _, of := range h {
			text.WriteString(of.Key + "=" + string(of.Value) + "\n")
		}
		f.Add(text.String(), []byte("value"), true)
	}
	f.Add(reserved.ValueOmitted.String()+"=true\n"+headers.ErrorStack+"=\n"+headers.ErrorStack+"=\xff\n=", []byte{}, false)
	f.Fuzz(func(t *testing.T, text string, value []byte, omit bool) {
		var h []kgo.RecordHeader
		for line := range strings.Lines(text) {
			key, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			h = append(h, kgo.RecordHeader{Key: key, Value: []byte(of)})
		}
		users := func(h []kgo.RecordHeader) []kgo.RecordHeader {
			return slices.DeleteFunc(append([]kgo.RecordHeader{}, h...), func(h kgo.RecordHeader) bool { return headers.Reserved(h.Key) })
		}
		before, steps := slices.Clone(h), 0
		for s, more := Whole.Next(h, value, omit); more; s, more = s.Next(h, value, omit) {
			if steps++; steps > int(Bare) {
				t.Fatal("the steps do not end")
			}
			got, kept := s.Of(h, value)
			if !cmp.Equal(users(got), users(h)) {
				t.Errorf("step %d: the user's headers are %v, want %v", s, users(got), users(h))
			}
			if s.Omits() != (kept == nil) || kept != nil && string(kept) != string(value) || s.Omits() && !omit {
				t.Errorf("step %d: the value is %q, omitting allowed: %v", s, kept, omit)
			}
			mark := kgo.RecordHeader{Key: headers.MetaFields, Value: []byte("omitted=true;")}
			if size(got, kept) >= size(h, value)+size([]kgo.RecordHeader{mark}, nil) {
				t.Errorf("step %d has %d bytes of %d", s, size(got, kept), size(h, value))
			}
		}
		if !cmp.Equal(h, before) {
			t.Error("the copy's headers were changed")
		}
	})
}

// size is the bytes of keys and values.
func size(h []kgo.RecordHeader, value []byte) int {
	n := len(value)
	for _, of := range h {
		n += len(of.Key) + len(of.Value)
	}
	return n
}
