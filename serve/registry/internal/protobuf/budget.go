package protobuf

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// mostParts bounds the fields and elements of a message: in memory one of two bytes takes some two
// hundred.
const mostParts = 500_000

// groupDepth is how much deeper a group counts than a message: the library looks for its end at
// each level anew.
const groupDepth = 16

// budget is how many more parts may be read.
type budget struct {
	types resolver
	left  int
	deep  bool
}

// unmarshal reads a message.
func (b *budget) unmarshal(data []byte, m *dynamicpb.Message) error {
	b.take(m.Descriptor(), data, 0)
	switch {
	case b.deep:
		return fmt.Errorf("it nests deeper than %d levels", text.MostDepth)
	case b.left < 0:
		return fmt.Errorf("it has more than %d fields and elements", mostParts)
	}
	return proto.UnmarshalOptions{AllowPartial: true, Resolver: b.types, RecursionLimit: text.MostDepth}.Unmarshal(data, m)
}

// take counts the parts of a message. Whatever is wrong with it ends the count: reading it finds
// the same.
func (b *budget) take(d protoreflect.MessageDescriptor, data []byte, depth int) {
	b.deep = b.deep || depth > text.MostDepth
	for len(data) > 0 && b.left >= 0 && !b.deep {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return
		}
		value := data[:n]
		data = data[n:]
		f := d.Fields().ByNumber(number)
		if f == nil {
			continue
		}
		b.left--
		inner := depth + 1
		switch kind {
		case protowire.StartGroupType:
			value, _ = protowire.ConsumeGroup(number, value)
			inner += groupDepth
		case protowire.BytesType:
			value, _ = protowire.ConsumeBytes(value)
		}
		switch {
		case f.Message() != nil:
			b.take(f.Message(), value, inner)
		case kind == protowire.BytesType && f.IsList():
			b.left -= elements(f.Kind(), value)
		}
	}
}

// elements is how many numbers a list has that stands in one piece.
func elements(kind protoreflect.Kind, value []byte) (n int) {
	switch kind {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return 0
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(value) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(value) / 8
	}
	for _, b := range value {
		if b < 0x80 {
			n++
		}
	}
	return n
}
