// Package avro reads and writes values in Avro's binary form as plain JSON. Values are read right
// into text. Library twmb/avro makes Go values of them, for which a few bytes can take gigabytes of
// memory: DESIGN.md says why it is not used. A test reads what it has written.
package avro

import (
	"fmt"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// Schema is a schema of Avro. It is safe for concurrent use.
type Schema struct {
	root *node
}

// Parse reads a schema. Those that it refers to come first, each after the ones that it needs.
func Parse(source string, needed []string) (*Schema, error) {
	p := parser{named: map[string]*node{}}
	for _, s := range needed {
		if _, err := p.parse(s); err != nil {
			return nil, fmt.Errorf("a schema that it refers to: %w", err)
		}
	}
	root, err := p.parse(source)
	if err != nil {
		return nil, err
	}
	return &Schema{root: root}, nil
}

// Name is the full name of the type.
func (s *Schema) Name() string { return s.root.name }

// Decode writes a value as JSON. The value of a union stands without the name of its branch.
func (s *Schema) Decode(data []byte, w *text.Writer) error {
	return s.decode(&decoder{rest: data, w: w})
}

func (s *Schema) decode(d *decoder) error {
	if s.root.kind == "bytes" { // Confluent's libraries write no length before them
		return s.root.writeBytes(d.w, d.rest)
	}
	if err := d.value(s.root, 0); err != nil {
		return err
	}
	if len(d.rest) > 0 {
		return fmt.Errorf("%d bytes are left behind the value", len(d.rest))
	}
	return nil
}

// Encode returns the value that JSON describes, as Decode writes it. A union's value takes the
// branch that it had in the value before, if it fits, else the first that it fits. It may name its
// branch, too: {"long": 5}. A field that is missing has its default, and null if that is none and
// the field may be null.
func (s *Schema) Encode(text, was []byte, w *text.Writer) ([]byte, error) {
	before := &decoder{rest: was, w: w, branches: map[path]int{}}
	if err := s.decode(before); err != nil {
		return nil, fmt.Errorf("the value before: %w", err)
	}
	if err := w.Whole(); err != nil {
		return nil, err
	}
	return s.encode(text, before.branches)
}

func (s *Schema) encode(text []byte, branches map[path]int) ([]byte, error) {
	v, err := read(text)
	if err != nil {
		return nil, err
	}
	e := encoder{branches: branches}
	if s.root.kind == "bytes" {
		return s.root.bytes(v)
	}
	if err := e.value(s.root, v, 0); err != nil {
		return nil, err
	}
	return e.out, nil
}
