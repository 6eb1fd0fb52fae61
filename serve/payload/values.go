package payload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Values are the values that a codec knows, as package redrive edits them.
type Values struct{ Codec Codec }

// DecodeValue returns the JSON of a value; nil if no schema describes it.
func (v Values) DecodeValue(ctx context.Context, r *kgo.Record) ([]byte, error) {
	d, err := v.Codec.Decode(ctx, r, Value)
	if d == nil {
		return nil, err
	}
	return d.JSON, nil
}

// EncodeValue returns the value that JSON describes.
func (v Values) EncodeValue(ctx context.Context, r *kgo.Record, json []byte) ([]byte, error) {
	return v.Codec.Encode(ctx, r, Value, json)
}
