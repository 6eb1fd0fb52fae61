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

// Handler handles one record. A first delivery and a retry get the same record, as it was first
// read from its source topic; [DeliveryOf] returns how this delivery differs.
//
// Nil means handled. The classifier decides what an error means. A handler can state it with
// package classify (Retryable, Terminal, Discard, RetryAfter, As). An unknown error is terminal and
// goes straight to the dead-letter topic, unless Config.Classifier decides otherwise. A panic
// counts as an error.
//
// The context is cancelled at the policy's HandlerTimeout, when the drain of a revoked lane runs
// out of time, and when the lane is lost. A handler must return then.
//
// Handlers run concurrently as Config.Order and Config.Concurrency allow. A handler may assign to
// the record's fields without changing its copies. A write into the bytes of key, value or headers
// does change them.
type Handler func(context.Context, *kgo.Record) error

// Decode makes a Handler from a function that takes a decoded value. Decoding is part of the
// attempt, and has its context. Three rules decide, in this order, what an error of the decoder
// means:
//
//  1. the decoder's own statement (classify.Retryable, classify.UnsupportedVersion …)
//  2. the rules in Config.Classifier
//  3. the built-in rules, if the error is plainly an outage of a service that the decoder needs. An
//     example is a schema registry that refuses connections or answers 503. Such an error is
//     retried.
//
// Any other error is terminal with class decode, and the record's bytes go to the dead-letter topic
// unchanged. See classify.Undecodable.
//
// If the decoder panics, the class is decode.panic.<type>. If it exceeds Policy.HandlerTimeout, the
// class is decode.timeout, and h is not called.
//
// Decode returns nil if decode or h is nil. [New] refuses that as a handler, and for a [Mux] such a
// route has none.
func Decode[T any](decode func(context.Context, *kgo.Record) (T, error), h func(context.Context, *kgo.Record, T) error) Handler {
	if decode == nil || h == nil {
		return nil
	}
	return func(ctx context.Context, r *kgo.Record) error {
		setDecoding(ctx, true)
		v, err := decodeSafely(ctx, r, decode)
		setDecoding(ctx, false)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return classify.Undecodable(err)
		}
		return h(ctx, r, v)
	}
}

// setDecoding registers that a record which may kill the process is being decoded, or is no more.
func setDecoding(ctx context.Context, isDecoding bool) {
	if runsAlone.Load() == 0 {
		return
	}
	if a := attemptOf(ctx); a != nil {
		a.in.from.setDecoding(a.off, isDecoding)
	}
}

// decodeSafely returns a panic of the decoder as an error.
func decodeSafely[T any](ctx context.Context, r *kgo.Record, decode func(context.Context, *kgo.Record) (T, error)) (v T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &classify.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return decode(ctx, r)
}

// JSON decodes a record's value. A tombstone (a null value) becomes nil for a pointer type, and is
// an error for other types.
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
