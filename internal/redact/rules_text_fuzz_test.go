package redact

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// marked returns a text with a mark in place of each part that a pattern fits.
func marked(p *regexp.Regexp, text string) string {
	var b strings.Builder
	at := 0
	for _, m := range p.FindAllStringIndex(text, -1) {
		b.WriteString(text[at:m[0]] + Mark)
		at = m[1]
	}
	return b.String() + text[at:]
}

// Whatever the names, the pattern and the letter: a header that is named is a mark, what a pattern
// fits is a mark in each text of the letter, all else stays byte for byte, and so does the letter
// itself.
func FuzzRules_HideHeadersAndTexts(f *testing.F) {
	for _, p := range []string{"hunter[0-9]+", "[0-9]{13,19}", "(?i)secret", "a|b", ".", "\\[redacted\\]", "^x", "(", "x*", "\\xff", "\\z.", "🙂+"} {
		f.Add("x-token, Authorization", p, "X-TOKEN", "hunter42 of 4111222233334444", "a secret\nin two lines")
		f.Add("", p, "note", "x🙂🙂\xff", "no")
	}
	f.Add(",", "a", "n", "v", "m")
	f.Add(" a ,b", "v", "B", "", "")
	f.Fuzz(func(t *testing.T, names, pattern, name, value, message string) {
		var named, patterns []Text
		if names != "" {
			named = []Text{{names, "headers"}}
		}
		if pattern != "" {
			patterns = []Text{{pattern, "patterns"}}
		}
		r, err := Parse(nil, named, patterns)
		if err != nil || r == nil {
			return
		}
		hides := func(text string) string { return text }
		if pattern != "" {
			p := regexp.MustCompile(pattern)
			hides = func(text string) string { return marked(p, text) }
		}
		if headers.Reserved(name) {
			t.Skip("siding's own headers have rules of their own")
		}
		l := &dlq.Letter{
			Record:  &kgo.Record{Value: []byte("\x00" + value), Headers: []kgo.RecordHeader{{Key: name, Value: []byte("\x00" + value)}, {Key: "other/name"}}},
			Meta:    headers.Meta{Message: message, Stack: value, History: []headers.Attempt{{Message: message}}},
			MetaErr: errors.New(message),
		}
		shown, hidden := r.Letter(l)
		if string(l.Record.Value) != "\x00"+value || l.Record.Headers[0].Key != name || string(l.Record.Headers[0].Value) != "\x00"+value || l.Meta.Message != message || l.Meta.History[0].Message != message {
			t.Errorf("the letter became %+v", l)
		}
		got := shown.Record.Headers[0]
		isNamed := slices.ContainsFunc(strings.Split(names, ","), func(n string) bool { return names != "" && strings.EqualFold(strings.TrimSpace(n), name) })
		switch {
		case isNamed && string(got.Value) != Mark:
			t.Errorf("header %q is named by %q, and shown as %q", name, names, got.Value)
		case !isNamed && string(got.Value) != hides("\x00"+value):
			t.Errorf("header %q is shown as %q", name, got.Value)
		}
		if want := hides("\x00" + value); string(shown.Record.Value) != want || hidden != (want != "\x00"+value) && !bytes.Contains([]byte(value), []byte(Mark)) {
			t.Errorf("the value %q is shown as %q, %v; want %q", value, shown.Record.Value, hidden, want)
		}
		if got.Key != hides(name) || shown.Meta.Stack != hides(value) || shown.Meta.Message != hides(message) || shown.Meta.History[0].Message != hides(message) || shown.MetaErr.Error() != hides(message) || r.Text(message) != hides(message) {
			t.Errorf("the texts are %+v, %v", shown.Meta, shown.MetaErr)
		}
	})
}
