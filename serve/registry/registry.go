package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/serve/payload"
	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// Bounds of keys and values, in bytes.
const (
	mostValue = 4 << 20
	mostText  = 16 << 20
)

// Registry is a [payload.Codec] by the schemas of a registry. It is safe for concurrent use. See
// DESIGN.md, "Values with a schema".
type Registry struct{ source *source }

// Open is [New], as a server's configuration takes it.
func Open(c payload.Registry) (payload.Codec, error) {
	r, err := New(c)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// New returns a registry. It is asked when it is needed first.
func New(c payload.Registry) (*Registry, error) {
	client, err := newClient(c, nil)
	if err != nil {
		return nil, err
	}
	return &Registry{newSource(client, client.now)}, nil
}

// Close implements [payload.Codec].
func (r *Registry) Close() { r.source.close() }

// Decode implements [payload.Codec].
func (r *Registry) Decode(ctx context.Context, rec *kgo.Record, side payload.Side) (*payload.Decoded, error) {
	f, s, err := r.find(ctx, rec, side)
	if f == nil || err != nil {
		return nil, err
	}
	d := &payload.Decoded{Kind: s.kind, ID: f.id, GUID: f.guid}
	err = guarded(func() (err error) {
		w := text.NewWriter(mostText)
		switch s.kind {
		case payload.Avro:
			d.Type = s.avro.Name()
			err = s.avro.Decode(f.data, w)
		case payload.Protobuf:
			var indexes []int
			if indexes, err = f.indexes(); err == nil {
				d.Type, err = s.proto.Decode(f.data, indexes, w)
			}
		default:
			d.Type = s.json.Name()
			d.JSON, err = s.json.Decode(f.data)
			return err
		}
		if err == nil {
			d.JSON, err = w.Text()
		}
		return err
	})
	if err != nil {
		return nil, &payload.MisfitError{Schema: f.String() + ofType(d.Type), Cause: oneLine(err.Error())}
	}
	return d, nil
}

// ofType names a type in a message.
func ofType(name string) string {
	if name == "" {
		return ""
	}
	return ", " + oneLine(name)
}

// Encode implements [payload.Codec].
func (r *Registry) Encode(ctx context.Context, rec *kgo.Record, side payload.Side, json []byte) ([]byte, error) {
	if len(json) > mostValue {
		return nil, fmt.Errorf("the JSON has more than %d bytes", mostValue)
	}
	f, s, err := r.find(ctx, rec, side)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("no schema describes the %s", side)
	}
	var data []byte
	err = guarded(func() (err error) {
		w := text.NewWriter(mostText)
		switch s.kind {
		case payload.Avro:
			data, err = s.avro.Encode(json, f.data, w)
		case payload.Protobuf:
			var indexes []int
			if indexes, err = f.indexes(); err == nil {
				data, err = s.proto.Encode(json, f.data, indexes, w)
			}
		default:
			data, err = s.json.Encode(json)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the JSON can't be written by %v: %s", f, oneLine(err.Error()))
	}
	return slices.Concat(f.before, data), nil
}

// find returns how a key or a value is framed, and its schema; or nil.
func (r *Registry) find(ctx context.Context, rec *kgo.Record, side payload.Side) (*frame, *schema, error) {
	f, err := frameOf(rec, side)
	if f == nil || err != nil {
		return nil, nil, err
	}
	if len(f.data) > mostValue {
		return nil, nil, fmt.Errorf("it has more than %d bytes, and is shown as it is", mostValue)
	}
	s, err := r.source.find(ctx, f)
	if err == nil {
		return f, s, nil
	}
	if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
		return nil, nil, err
	}
	return nil, nil, fmt.Errorf("%v: %w", f, err)
}
