package headers

import (
	"errors"
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/reserved"
)

// A forged or broken due time must neither run a record early nor park it for ever.
func TestCheck_BelievesOnlyWhatATierCanHold(t *testing.T) {
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
		{"due in the year 9999", func(m *Meta) { m.NotBefore = time.UnixMilli(reserved.MaxMillis) }, NotBefore, ErrRange},
		{"no due time", func(m *Meta) { m.NotBefore = time.Time{} }, NotBefore, ErrMissing},
		{"no origin", func(m *Meta) { m.Original = Position{} }, OriginalTopic, ErrMissing},
		{"no group", func(m *Meta) { m.Group = "" }, Group, ErrMissing},
		{"failed without a class", func(m *Meta) { m.Class = "" }, ErrorClass, ErrMissing},
		{"failed at no time", func(m *Meta) { m.FailedAt = time.Time{} }, FailedAt, ErrMissing},
		{"first failed at no time", func(m *Meta) { m.FirstFailedAt = time.Time{} }, firstFailedAtKey, ErrMissing},
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
	m.NotBefore = time.UnixMilli(reserved.MaxMillis)
	if err := m.CheckRetry(written, 0); err != nil {
		t.Errorf("unlimited retention: %v", err)
	}
}
