package payload

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
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
	}
	return &Decoded{JSON: []byte(said)}, nil
}

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
		if how.Err != nil {
			wrong = how.Err.Error()
		}
		if string(got.Record.Key) != c.key || string(got.Record.Value) != c.value || wrong != c.wrong || (how.Key != nil) != c.keyIsRead || (how.Value != nil) != c.valueIsRead {
			t.Errorf("%v: %s %s, %q, want %s %s, %q", c.codec, got.Record.Key, got.Record.Value, wrong, c.key, c.value, c.wrong)
		}
		if string(l.Record.Key) != "k" || string(l.Record.Value) != "v" {
			t.Error("the letter has changed")
		}
	}
}
