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

// undecodable leaves an error alone that says by itself what it means, and makes any other terminal.
func undecodable(err error) error {
	var plain *classify.Classifier
	if result := plain.Classify(err); !result.Default && result.Verdict != classify.VerdictTerminal {
		return err
	}
	return classify.As(classify.Terminal(fmt.Errorf("decode: %w", err)), classify.ClassDecode)
}
