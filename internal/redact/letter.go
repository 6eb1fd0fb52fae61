package redact

// What is hidden of a letter: its record, and what its headers say.

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

// Letter returns a letter of which everything that may be shown follows the rules. hidden reports
// that they hide a part of its value. The letter itself stays as it is.
func (r *Rules) Letter(l *dlq.Letter) (shown *dlq.Letter, hidden bool) {
	if r == nil {
		return l, false
	}
	copied, record := *l, *l.Record
	copied.Record, copied.Redacted = &record, true
	if json.Valid(record.Value) {
		r.parsed.Add(1)
	}
	record.Value, hidden = r.Bytes(record.Value)
	record.Key = r.Key(record.Key)
	m := &copied.Meta
	m.Message, m.Stack = r.Message(m.Message), r.header(headers.ErrorStack, m.Stack)
	for k, text := range map[reserved.Key]*string{
		reserved.TraceParent: &m.TraceParent, reserved.ConsumerVersion: &m.Version, reserved.Environment: &m.Environment, reserved.Host: &m.Host,
	} {
		*text = r.header(k.String(), *text)
	}
	m.History = slices.Clone(m.History)
	name := reserved.History.String()
	history := r.names(name)
	for i := range m.History {
		was := m.History[i].Message
		m.History[i].Message = r.header(name, was)
		history = history || m.History[i].Message != was
	}
	// The text of the history is encoded, so that a pattern may not fit it there. Its times are not
	// the user's.
	shownHistory := !history && l.MetaErr == nil && len(m.History) > 0
	if copied.MetaErr != nil {
		copied.MetaErr = r.fault(copied.MetaErr, history)
	}
	record.Headers = slices.Clone(record.Headers)
	for i := range record.Headers {
		h := &record.Headers[i]
		if h.Key == headers.MetaFields && !r.names(h.Key) {
			h.Value = r.fields(h.Value, history, shownHistory)
		} else {
			h.Value = r.value(h.Key, h.Value, history, shownHistory)
		}
		h.Key = r.Text(h.Key)
	}
	return &copied, hidden
}

// Consumer returns the host and the version of the consumer that failed a letter, as they may be
// shown.
func (r *Rules) Consumer(host, version string) (shownHost, shownVersion string) {
	if r == nil {
		return host, version
	}
	return r.header(reserved.Host.String(), host), r.header(reserved.ConsumerVersion.String(), version)
}

// fields hides parts of dlq-meta: each field as if it were the header of its key, and all of one
// that this version does not know, or cannot read.
func (r *Rules) fields(text []byte, history, shownHistory bool) []byte {
	var out []byte
	for len(text) > 0 {
		f, rest, ok := reserved.NextField(text)
		if !ok {
			return append(out, Mark...)
		}
		if text = rest; f.Key == reserved.User {
			out = append(out, r.unknown(&f)...)
			continue
		}
		value := f.Value
		if f.Key != reserved.History {
			value = reserved.Unescape(value)
		}
		out = reserved.AppendField(out, f.Key, r.value(f.Key.String(), value, history, shownHistory))
	}
	return out
}

// unknown hides parts of a field that this version does not know. Where a pattern may fit its text
// only as it was before it was encoded, its whole value is hidden.
func (r *Rules) unknown(f *reserved.Field) []byte {
	if text := reserved.Unescape(f.Text); len(text) < len(f.Text) && r.Text(string(text)) != string(text) {
		name, _, _ := bytes.Cut(f.Text, []byte("="))
		return append(slices.Clip(name), "="+Mark+";"...)
	}
	shown, _ := r.bytes(f.Text, false)
	return shown
}

// fault hides parts of the error about a header, which quotes the header's value.
func (r *Rules) fault(err error, history bool) error {
	f, ok := errors.AsType[*headers.FieldError](err)
	if !ok || errors.Is(f, headers.ErrMissing) {
		return errors.New(r.Text(err.Error()))
	}
	shown := *f
	if f.Key != headers.MetaFields || r.names(f.Key) {
		shown.Value = string(r.value(f.Key, []byte(f.Value), history, false))
	} else if text := string(r.fields([]byte(f.Value+";"), history, false)); strings.Contains(text, Mark) {
		shown.Value = strings.TrimSuffix(text, ";")
	}
	return errors.New(r.Text(shown.Error()))
}

// value hides parts of the value of a header.
func (r *Rules) value(key string, value []byte, history, shownHistory bool) []byte {
	if len(value) == 0 {
		return value
	}
	k := reserved.Of(key)
	switch {
	case k == reserved.History && history, r.names(key):
		return []byte(Mark)
	case k == reserved.History && shownHistory:
		return value
	case k == reserved.History:
		if text := string(reserved.Unescape(value)); r.Text(text) != text {
			return []byte(Mark)
		}
	case numbers.Has(k):
		if _, err := reserved.Int(value, 0, reserved.MaxMillis); err == nil {
			return value
		}
	}
	shown, _ := r.bytes(value, false)
	return shown
}

// numbers are siding's headers that hold a number or a time. A pattern for card numbers fits Unix
// milliseconds too, and these headers hold nothing of the user's. A larger number than a time can
// be is no exception: another program may have written it.
var numbers = reserved.SetOf(
	reserved.OriginalPartition, reserved.OriginalOffset, reserved.OriginalTimestamp, reserved.Attempts, reserved.FirstFailedAt, reserved.FailedAt,
	reserved.NotBefore, reserved.Hops, reserved.RedriveCount, reserved.RedriveAt, reserved.RedriveMaxAttempts,
)
