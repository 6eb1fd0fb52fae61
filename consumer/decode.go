package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// Decode makes a handler of one that takes a decoded value. Decoding is part of the attempt: what cannot be decoded fails
// terminally with class decode, and its bytes go to the dead-letter topic as they came. A decoder that needs something to be
// up (a schema registry) says so with classify.Retryable.
func Decode[T any](decode func(*kgo.Record) (T, error), h func(context.Context, *kgo.Record, T) error) Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		v, err := decode(r)
		if err != nil {
			return undecodable(err)
		}
		return h(ctx, r, v)
	}
}

// JSON decodes a record's value. A tombstone (a null value) gives nil for a pointer type and is an error otherwise.
func JSON[T any](r *kgo.Record) (T, error) {
	var v T
	if r.Value == nil {
		if reflect.TypeFor[T]().Kind() == reflect.Pointer {
			return v, nil
		}
		return v, errors.New("the value is null (a tombstone); decode into a pointer to take it as nil")
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return v, fmt.Errorf("value as JSON: %w", err)
	}
	return v, nil
}

// undecodable makes an error terminal, unless the decoder said in plain words that it is not: that a payload ends too early
// looks like a broken connection to the built-in rules.
func undecodable(err error) error {
	if result := plainWord.Classify(err); result.Verdict != classify.VerdictTerminal {
		return err
	}
	return classify.As(classify.Terminal(fmt.Errorf("decode: %w", err)), classify.ClassDecode)
}

// plainWord has a rule in front of the built-in ones that calls everything terminal: what it does not, somebody marked.
var plainWord = classify.Classifier{Rules: []classify.Rule{
	classify.When(func(error) bool { return true }, classify.VerdictTerminal, ""),
}}
