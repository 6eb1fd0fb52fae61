package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// Handler handles one record. The record is as it was first read, from its source topic, whether
// this is its first delivery or a retry; [DeliveryOf] tells what is special about this one.
//
// Nil means handled. What an error means is the classifier's to say: package classify has the words
// for a handler to be plain about it (Retryable, Terminal, Discard, RetryAfter, As). An error that
// nobody knows is terminal and goes straight to the dead-letter topic; Config.Classifier changes
// that. A panic is an error too.
//
// The context is cancelled at the policy's HandlerTimeout and when the lane is given up; a handler
// has to obey it. Handlers run concurrently as Config.Order and Config.Concurrency allow. One that
// assigns the record's fields does not change what is forwarded; one that writes into their bytes
// does.
type Handler func(context.Context, *kgo.Record) error

// Decode makes a handler of one that takes a decoded value. Decoding is part of the attempt, and
// has its context. What a decoder's error means is found in this order: by the decoder's own word
// (classify.Retryable, classify.UnsupportedVersion …), by the rules in Config.Classifier, by the
// built-in rules where it is plainly an outage of something that the decoder needs (a schema
// registry that refuses connections or answers 503, say), which is retried. The rest is terminal
// with class decode, and the record's bytes go to the dead-letter topic as they came. See
// classify.Undecodable.
//
// A decoder that panics has class decode.panic.<type>, and one that runs out of
// Policy.HandlerTimeout decode.timeout: h is not called then, so that its failures are its own.
func Decode[T any](decode func(context.Context, *kgo.Record) (T, error), h func(context.Context, *kgo.Record, T) error) Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		v, err := decodeSafely(ctx, r, decode)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return classify.Undecodable(err)
		}
		return h(ctx, r, v)
	}
}

// decodeSafely turns a panic of the decoder into its error.
func decodeSafely[T any](ctx context.Context, r *kgo.Record, decode func(context.Context, *kgo.Record) (T, error)) (v T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &classify.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return decode(ctx, r)
}

// JSON decodes a record's value. A tombstone (a null value) gives nil for a pointer type and is an
// error otherwise.
func JSON[T any](_ context.Context, r *kgo.Record) (T, error) {
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
