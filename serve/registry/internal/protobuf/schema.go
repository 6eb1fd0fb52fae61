// Package protobuf reads and writes protobuf's messages as plain JSON: with the names of the
// schema, and 64-bit numbers as numbers. Otherwise it is protobuf's mapping to JSON, which the
// library reads back.
package protobuf

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// Schema is a file of protobuf's language. It is safe for concurrent use.
type Schema struct {
	file  protoreflect.FileDescriptor
	types resolver
}

// mostNested is how deep a file may nest.
const mostNested = 100

// Parse reads a schema. The files that it imports are by their names.
func Parse(source string, imported map[string]string) (*Schema, error) {
	const root = "the schema.proto"
	l := linker{sources: map[string]string{"confluent/type/decimal.proto": decimal}, files: new(protoregistry.Files), begun: map[string]bool{}}
	maps.Copy(l.sources, imported)
	l.sources[root] = source
	for name, source := range l.sources {
		if n := text.DepthOfProto(source); n > mostNested {
			return nil, fmt.Errorf("%s nests %d levels deep, and %d are allowed", name, n, mostNested)
		}
	}
	file, err := l.link(root)
	if err != nil {
		return nil, err
	}
	return &Schema{file: file, types: resolver{dynamicpb.NewTypes(l.files)}}, nil
}

// Decode writes a message as JSON, and returns the message's name. A field that has no presence is
// there with its zero value, and one that has is there if it was set.
func (s *Schema) Decode(data []byte, indexes []int, w *text.Writer) (name string, err error) {
	d, err := s.message(indexes)
	if err != nil {
		return "", err
	}
	name = string(d.FullName())
	m := dynamicpb.NewMessage(d)
	p := printer{w: w, budget: budget{types: s.types, left: mostParts}}
	if err := p.unmarshal(data, m); err != nil {
		return name, err
	}
	return name, p.message(m)
}

// Encode returns the message that JSON describes, as Decode writes it, or as protobuf's own mapping
// does. It refuses if JSON does not have all of the message before.
func (s *Schema) Encode(json, was []byte, indexes []int, w *text.Writer) ([]byte, error) {
	if _, err := s.Decode(was, indexes, w); err != nil {
		return nil, fmt.Errorf("the message before: %w", err)
	}
	if err := w.Whole(); err != nil {
		return nil, err
	}
	if text.Depth(string(json)) > text.MostDepth {
		return nil, fmt.Errorf("the JSON nests deeper than %d levels", text.MostDepth)
	}
	d, err := s.message(indexes)
	if err != nil {
		return nil, err
	}
	m := dynamicpb.NewMessage(d)
	if err := (protojson.UnmarshalOptions{Resolver: s.types, RecursionLimit: text.MostDepth}).Unmarshal(json, m); err != nil {
		// The library varies a blank, so that nobody compares its errors.
		return nil, errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: "))
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// message returns the message that indexes lead to: the first is that of a message of the file, and
// each further one that of a message within it.
func (s *Schema) message(indexes []int) (protoreflect.MessageDescriptor, error) {
	within := s.file.Messages()
	var m protoreflect.MessageDescriptor
	for _, i := range indexes {
		if m = nth(within, i); m == nil {
			return nil, fmt.Errorf("the schema has no message %v", indexes)
		}
		within = m.Messages()
	}
	if m == nil {
		return nil, errors.New("no message is named")
	}
	return m, nil
}

// nth counts messages as they stand in the file. The messages that entries of maps are made of are
// not there, and come last.
func nth(all protoreflect.MessageDescriptors, n int) protoreflect.MessageDescriptor {
	for _, entries := range []bool{false, true} {
		for i := range all.Len() {
			if all.Get(i).IsMapEntry() != entries {
				continue
			}
			if n--; n < 0 {
				return all.Get(i)
			}
		}
	}
	return nil
}
