package payload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

// values are the values that a codec knows, as package redrive edits them.
type values struct{ Codec }

// ValuesOf returns the values that a codec knows; nil without one.
func ValuesOf(c Codec) redrive.Values {
	if c == nil {
		return nil
	}
	return values{c}
}

// DecodeValue returns the JSON of a value; nil if no schema describes it.
func (v values) DecodeValue(ctx context.Context, r *kgo.Record) ([]byte, error) {
	d, err := v.Decode(ctx, r, Value)
	if d == nil {
		return nil, err
	}
	return d.JSON, nil
}

// EncodeValue returns the value that JSON describes.
func (v values) EncodeValue(ctx context.Context, r *kgo.Record, json []byte) ([]byte, error) {
	return v.Encode(ctx, r, Value, json)
}
