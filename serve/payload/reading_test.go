package payload

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/redact"
)

// codec knows what each text says; empty is an error.
type codec map[string]string

func (c codec) Decode(_ context.Context, r *kgo.Record, side Side) (*Decoded, error) {
	said, ok := c[string(side.Of(r))]
	switch {
	case !ok:
		return nil, nil
	case said == "":
		return nil, errors.New("gone")
	case said == "misfit":
		return nil, &MisfitError{"schema 7", "secret is no number"}
	}
	return &Decoded{JSON: []byte(said)}, nil
}

func (c codec) Close() {}

func (c codec) Encode(context.Context, *kgo.Record, Side, []byte) ([]byte, error) { return nil, nil }

func TestLetter_SaysWhatACodecReads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codec                  Codec
		key, value, wrong      string
		keyIsRead, valueIsRead bool
	}{
		{nil, "k", "v", "", false, false},
		{codec{}, "k", "v", "", false, false},
		{codec{"v": "1"}, "k", "1", "", false, true},
		{codec{"v": "", "k": "2"}, "2", "v", "value: gone", true, false},
		{codec{"k": ""}, "k", "v", "key: gone", false, false},
		{codec{"k": "", "v": ""}, "k", "v", "value: gone", false, false},
	} {
		l := &dlq.Letter{Record: &kgo.Record{Key: []byte("k"), Value: []byte("v")}}
		got, how := Letter(t.Context(), c.codec, l)
		wrong := ""
		if err := how.Err(); err != nil {
			wrong = err.Error()
		}
		if string(got.Record.Key) != c.key || string(got.Record.Value) != c.value || wrong != c.wrong || (how.Key != nil) != c.keyIsRead || (how.Value != nil) != c.valueIsRead {
			t.Errorf("%v: %s %s, %q, want %s %s, %q", c.codec, got.Record.Key, got.Record.Value, wrong, c.key, c.value, c.wrong)
		}
		if string(l.Record.Key) != "k" || string(l.Record.Value) != "v" {
			t.Error("the letter has changed")
		}
	}
}

func rulesOf(t *testing.T, path, pattern string) *redact.Rules {
	t.Helper()
	texts := func(text string) (all []redact.Text) {
		if text != "" {
			all = append(all, redact.Text{Text: text, From: "--redact"})
		}
		return all
	}
	r, err := redact.Parse(texts(path), nil, texts(pattern))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Paths lead into what was read. What cannot be read is hidden as a whole, also beside patterns,
// which otherwise let bytes through that have no name of a path in them.
func TestShown_HidesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	const secret = `{"card":"secret","no":7}`
	for _, c := range []struct {
		path, pattern, says string
		value, err          string
		hidden              bool
	}{
		{"", "", secret, secret, "", false},
		{"card", "", secret, `{"card":"[redacted]","no":7}`, "", true},
		{"other", "", secret, secret, "", false},
		{"", "secret", secret, `{"card":"[redacted]","no":7}`, "", true},
		{"card", "", "", "[redacted] 6 bytes that cannot be read by their schema", "value: gone", true},
		{"card", "4111", "", "[redacted] 6 bytes that cannot be read by their schema", "value: gone", true},
		{"", "4111", "", "secret", "value: gone", false},
		{"", "gone", "", "secret", "value: [redacted]", false},
		{"", "", "misfit", "secret", "value: it does not fit schema 7: secret is no number", false},
		{"", "4111", "misfit", "secret", "value: it does not fit schema 7", false},
		{"card", "", "misfit", "[redacted] 6 bytes that cannot be read by their schema", "value: it does not fit schema 7", true},
	} {
		l := &dlq.Letter{Record: &kgo.Record{Key: []byte("secret"), Value: []byte("secret")}}
		shown, hidden, how := Shown(t.Context(), codec{"secret": c.says}, rulesOf(t, c.path, c.pattern), l)
		said := ""
		if err := how.Err(); err != nil {
			said = err.Error()
		}
		if string(shown.Record.Value) != c.value || hidden != c.hidden || said != c.err || string(l.Record.Value) != "secret" {
			t.Errorf("%q, %q: %s is shown as %s, %v, %q, want %s, %v, %q", c.path, c.pattern, c.says, shown.Record.Value, hidden, said, c.value, c.hidden, c.err)
		}
		if key := string(shown.Record.Key); key != c.value {
			t.Errorf("%q, %q: the key %s is shown as %s", c.path, c.pattern, c.says, key)
		}
	}
	plain := &dlq.Letter{Record: &kgo.Record{Value: []byte("plain 4111")}}
	if shown, _, _ := Shown(t.Context(), codec{}, rulesOf(t, "card", "4111"), plain); !strings.HasPrefix(string(shown.Record.Value), "plain ") {
		t.Errorf("bytes of no schema are shown as %s", shown.Record.Value)
	}
}
