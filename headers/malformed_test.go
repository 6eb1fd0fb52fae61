package headers

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMalformed_KeepsHeadersAsFound(t *testing.T) {
	t.Parallel()
	h := []kgo.RecordHeader{
		{Key: "user", Value: nil},
		{Key: Attempts, Value: []byte("-1")},
		{Key: ErrorClass, Value: []byte("timeout")},
		{Key: Attempts, Value: []byte("\xff\x00")},
		{Key: FailureReason, Value: []byte("exhausted")},
		{Key: "user", Value: []byte{}},
		{Key: ErrorMessage, Value: []byte("old")},
		{Key: FailedAt, Value: []byte("1")},
		{Key: errorFingerprintKey, Value: []byte("0123456789abcdef")},
		{Key: NotBefore, Value: []byte("253402300799999")},
		{Key: FailureReason, Value: []byte("held")},
	}
	before := clone(h)
	_, err := Parse(h)
	got := Malformed(h, err, t0)
	want := []kgo.RecordHeader{
		h[0], h[1], h[3], h[5], h[8], h[9],
		{Key: ErrorClass, Value: []byte("malformed")},
		{Key: ErrorMessage, Value: []byte(`header dlq-attempts: "-1" is duplicated`)},
		{Key: FailureReason, Value: []byte("malformed")},
		{Key: FailedAt, Value: []byte("1763000000123")},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(before, h); d != "" {
		t.Errorf("input changed (-before +after):\n%s", d)
	}
	m, err := Parse(got)
	if err == nil || m.Reason != ReasonMalformed || m.Class != ClassMalformed {
		t.Errorf("read back: %+v, %v; want the reason beside the error", m, err)
	}
	for _, err := range []error{nil, errors.New("x")} {
		if n := len(Malformed(nil, err, t0)); n != 4 {
			t.Errorf("%d headers of none, want the four", n)
		}
	}
}

// The time of a malformed letter is that of its headers' failure, not of the record's first one.
func TestMalformed_TheFirstFailureIsNotItsOwn(t *testing.T) {
	t.Parallel()
	m := full("")
	for name, first := range map[string]time.Time{"failed twice": t0.Add(-time.Minute), "failed once": t0, "held": {}} {
		m.FirstFailedAt, m.FailedAt = first, t0
		if name == "held" {
			m.FailedAt = time.Time{}
		}
		got := mustParse(t, Malformed(m.Append(nil), &FieldError{Key: NotBefore, Err: ErrRange}, t0.Add(time.Hour)))
		if name != "failed twice" {
			first = time.Time{}
		}
		if !got.FirstFailedAt.Equal(first) || !got.FailedAt.Equal(t0.Add(time.Hour)) {
			t.Errorf("%s: failed first at %v and last at %v", name, got.FirstFailedAt, got.FailedAt)
		}
	}
}

// A consumer that reads format 1 only calls the history of format 2 malformed. Its dead letter has
// all that a redrive needs, once a version reads it that knows the format.
func TestMalformed_LetterOfAnOlderConsumerIsWhole(t *testing.T) {
	t.Parallel()
	want := full("")
	got := mustParse(t, Malformed(want.Append(nil), &FieldError{Key: historyKey, Err: ErrSyntax}, t0))
	want.Reason, want.Class, want.Message, want.FailedAt = ReasonMalformed, ClassMalformed, got.Message, t0
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
