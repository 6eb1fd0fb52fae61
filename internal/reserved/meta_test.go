package reserved

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func TestField_HoldsAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			text  []byte
			keys  []Key
			texts [][]byte
		)
		for k := range Count {
			if k.FieldName() != "" && k != History && rapid.Bool().Draw(t, "there") {
				value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")
				keys, texts, text = append(keys, k), append(texts, value), AppendField(text, k, value)
			}
		}
		for i := range keys {
			f, rest, ok := NextField(text)
			if !ok || f.Key != keys[i] || !bytes.Equal(Unescape(f.Value), texts[i]) {
				t.Fatalf("%q of %q, want %q", f.Text, text, texts[i])
			}
			text = rest
		}
		if len(text) > 0 {
			t.Fatalf("left: %q", text)
		}
	})
}

func TestUnescape_LeavesWhatIsNoCode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "%": "%", "%2": "%2", "%zz": "%zz", "%+1": "%+1", "%25%2": "%%2", "a%3Bb%3b": "a;b;"} {
		if got := string(Unescape([]byte(in))); got != want {
			t.Errorf("%q is read as %q, want %q", in, got, want)
		}
	}
}

func TestWith_ReplacesInEachFormat(t *testing.T) {
	t.Parallel()
	text := func(h []kgo.RecordHeader) (s string) {
		for i := range h {
			s += h[i].Key + " " + string(h[i].Value) + "\n"
		}
		return s
	}
	h := []kgo.RecordHeader{
		{Key: "user", Value: []byte("1")},
		{Key: "dlq-hops", Value: []byte("1")},
		{Key: "dlq-attempts", Value: []byte("1")},
		{Key: "dlq-meta", Value: []byte("env=x;hops=1;later=1;hops=2;broken")},
	}
	before := text(h)
	for _, tt := range []struct {
		got  []kgo.RecordHeader
		want string
	}{
		{With(h, Attempts, "2"), "user 1\ndlq-hops 1\ndlq-meta env=x;hops=1;later=1;hops=2;broken\ndlq-attempts 2\n"},
		{With(h[:3], Hops, "2;"), "user 1\ndlq-attempts 1\ndlq-meta hops=2%3B;\n"},
		{With([]kgo.RecordHeader{{Key: "dlq-meta", Value: []byte("hops=1;env=x;")}}, Hops, "2"), "dlq-meta hops=2;env=x;\n"},
		{With(h, Hops, "2"), "user 1\ndlq-attempts 1\ndlq-meta hops=2;env=x;later=1;broken\n"},
		{Without(h, SetOf(Hops, Attempts)), "user 1\ndlq-meta env=x;later=1;broken\n"},
		{Without(h, SetOf(Meta)), "user 1\ndlq-hops 1\ndlq-attempts 1\n"},
	} {
		if got := text(tt.got); got != tt.want {
			t.Errorf("got\n%swant\n%s", got, tt.want)
		}
	}
	if text(h) != before {
		t.Errorf("the input changed: %s", text(h))
	}
	for _, k := range []Key{Hops, Attempts, Environment, Meta} {
		if !Any(h, SetOf(k)) || Any(h[:1], SetOf(k)) {
			t.Errorf("%s: %v with it, %v without", k, Any(h, SetOf(k)), Any(h[:1], SetOf(k)))
		}
	}
}
