// Package payload says how keys and values that a schema registry describes are read as JSON, and
// written again. Package serve/registry does it by a registry with Confluent's API: whoever uses
// only this package links none of its libraries.
package payload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Side is the part of a record that is read.
type Side string

// The sides of a record.
const (
	Key   Side = "key"
	Value Side = "value"
)

// Of returns the side's bytes of a record.
func (s Side) Of(r *kgo.Record) []byte {
	if s == Key {
		return r.Key
	}
	return r.Value
}

// Kind is the language of a schema.
type Kind string

// The languages that are read.
const (
	Avro       Kind = "avro"
	Protobuf   Kind = "protobuf"
	JSONSchema Kind = "json-schema"
)

// Decoded is what a key or a value says.
type Decoded struct {
	// JSON is valid JSON in UTF-8: docs of package serve/registry say how each type is written.
	JSON []byte
	// Kind is the language of the schema, and Type the full name of the type in it: of an Avro
	// schema or a protobuf message, or the title of a JSON schema. It may be empty.
	Kind Kind
	Type string
	// ID is the schema's number at the registry. It is zero where a header names the schema by its
	// GUID.
	ID   int
	GUID string
}

// Codec reads and writes by schemas. It is safe for concurrent use.
type Codec interface {
	// Decode reads the key or the value of a record, whose headers may name the schema. It returns
	// nil without an error if nothing says that a schema describes the bytes: then they are shown
	// as they are, and so they are after an error, which has one line.
	Decode(ctx context.Context, r *kgo.Record, side Side) (*Decoded, error)

	// Encode returns the bytes for JSON that replaces what the record's key or value says, by the
	// same schema and with the same framing. It is an error if the JSON does not fit the schema,
	// or something of the bytes that has no JSON would be lost.
	Encode(ctx context.Context, r *kgo.Record, side Side, json []byte) ([]byte, error)

	// Close ends what is asked, and waits for it. Later calls return errors.
	Close()
}
