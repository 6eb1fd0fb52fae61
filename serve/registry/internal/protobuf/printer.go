package protobuf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// printer writes messages.
type printer struct {
	w *text.Writer
	budget
}

func (p *printer) message(m protoreflect.Message) error {
	if err := p.w.Enter(); err != nil {
		return err
	}
	defer p.w.Leave()
	if own, err := p.wellKnown(m); own {
		return err
	}
	p.w.Raw("{")
	if _, err := p.fields(m, true); err != nil {
		return err
	}
	p.w.Raw("}")
	return nil
}

// fields writes the members of a message.
func (p *printer) fields(m protoreflect.Message, first bool) (isFirst bool, err error) {
	if b := m.GetUnknown(); len(b) > 0 {
		n, _, _ := protowire.ConsumeTag(b)
		p.w.Lossy(fmt.Sprintf("%s has a field %d that the schema does not know, and an edit would lose it", m.Descriptor().FullName(), n))
	}
	member := func(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
		p.w.Member(f.TextName(), first)
		first = false
		if err := p.field(f, v); err != nil {
			return fmt.Errorf("%s: %w", f.TextName(), err)
		}
		return p.w.Err()
	}
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		if f := all.Get(i); m.Has(f) || !f.HasPresence() {
			if err := member(f, m.Get(f)); err != nil {
				return false, err
			}
		}
	}
	var extensions []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if f.IsExtension() {
			extensions = append(extensions, f)
		}
		return true
	})
	slices.SortFunc(extensions, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	for _, f := range extensions {
		if err := member(f, m.Get(f)); err != nil {
			return false, err
		}
	}
	return first, nil
}

func (p *printer) field(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.IsList():
		p.w.Raw("[")
		list := v.List()
		for i := range list.Len() {
			if i > 0 {
				p.w.Raw(",")
			}
			if err := cmp.Or(p.w.Err(), p.value(f, list.Get(i))); err != nil {
				return err
			}
		}
		p.w.Raw("]")
		return nil
	case f.IsMap():
		return p.object(f, v.Map())
	}
	return p.value(f, v)
}

// object writes a map, whose entries have no order of their own.
func (p *printer) object(f protoreflect.FieldDescriptor, m protoreflect.Map) error {
	var keys []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch f.MapKey().Kind() {
		case protoreflect.StringKind:
			return cmp.Compare(a.String(), b.String())
		case protoreflect.BoolKind:
			return cmp.Compare(a.String(), b.String())
		case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
			return cmp.Compare(a.Uint(), b.Uint())
		}
		return cmp.Compare(a.Int(), b.Int())
	})
	p.w.Raw("{")
	for i, k := range keys {
		p.w.Member(k.String(), i == 0)
		if err := cmp.Or(p.w.Err(), p.value(f.MapValue(), m.Get(k))); err != nil {
			return fmt.Errorf("%s: %w", k.String(), err)
		}
	}
	p.w.Raw("}")
	return nil
}

func (p *printer) value(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch f.Kind() {
	case protoreflect.BoolKind:
		p.w.Bool(v.Bool())
	case protoreflect.StringKind:
		p.w.String(v.String())
	case protoreflect.BytesKind:
		p.w.Bytes(v.Bytes())
	case protoreflect.FloatKind:
		p.w.Float(v.Float(), 32)
	case protoreflect.DoubleKind:
		p.w.Float(v.Float(), 64)
	case protoreflect.EnumKind:
		if d := f.Enum().Values().ByNumber(v.Enum()); f.Enum().FullName() == "google.protobuf.NullValue" {
			p.w.Raw("null")
		} else if d != nil {
			p.w.String(string(d.Name()))
		} else {
			p.w.Int(int64(v.Enum()))
		}
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		p.w.Uint(v.Uint())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return p.message(v.Message())
	default:
		p.w.Int(v.Int())
	}
	return nil
}

// wellKnown writes a message that has a form of its own in JSON. own is whether it is one.
func (p *printer) wellKnown(m protoreflect.Message) (own bool, err error) {
	d := m.Descriptor()
	if d.ParentFile().Package() != "google.protobuf" {
		return false, nil
	}
	switch d.Name() {
	case "Any":
		return true, p.any(m)
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue":
		if f := d.Fields().ByNumber(1); f != nil && !f.IsList() {
			return true, p.value(f, m.Get(f))
		}
	case "Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue":
		b, err := protojson.MarshalOptions{AllowPartial: true}.Marshal(m.Interface())
		if err != nil { // out of range, say: it is shown by its fields
			p.w.Lossy(fmt.Sprintf("a %s of it is not valid", d.Name()))
			return false, nil
		}
		var out bytes.Buffer
		if err := json.Compact(&out, b); err != nil {
			return true, err
		}
		p.w.Raw(out.String())
		return true, p.w.Err()
	}
	return false, nil
}

// forms are the types whose JSON is no object of their fields.
var forms = []protoreflect.Name{
	"Any", "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue",
	"Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue", "Empty",
}

// any writes the message that an Any has, with its type.
func (p *printer) any(m protoreflect.Message) error {
	d := m.Descriptor()
	typed, data := d.Fields().ByNumber(1), d.Fields().ByNumber(2)
	if typed == nil || data == nil || typed.Kind() != protoreflect.StringKind || data.Kind() != protoreflect.BytesKind {
		return errors.New("its Any is not that of protobuf")
	}
	url, b := m.Get(typed).String(), m.Get(data).Bytes()
	if url == "" && len(b) == 0 {
		p.w.Raw("{}")
		return nil
	}
	p.w.Raw(`{"@type":`)
	p.w.String(url)
	inner, err := p.inner(url, b)
	switch {
	case err != nil:
		p.w.Lossy("an Any of it can't be read: " + err.Error())
		p.w.Member("value", false)
		p.w.Bytes(b)
	case inner.Descriptor().ParentFile().Package() == "google.protobuf" && slices.Contains(forms, inner.Descriptor().Name()):
		p.w.Member("value", false)
		if err := p.message(inner); err != nil {
			return err
		}
	default:
		if err := p.w.Enter(); err != nil {
			return err
		}
		defer p.w.Leave()
		if _, err := p.fields(inner, false); err != nil {
			return err
		}
	}
	p.w.Raw("}")
	return nil
}

// inner reads the message of an Any.
func (p *printer) inner(url string, b []byte) (protoreflect.Message, error) {
	t, err := p.types.FindMessageByURL(url)
	if err != nil {
		return nil, fmt.Errorf("its type %q is not in the schema", url[:min(len(url), 200)])
	}
	m := dynamicpb.NewMessage(t.Descriptor())
	return m, p.unmarshal(b, m)
}
