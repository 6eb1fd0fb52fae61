package protobuf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/anypb"       // a schema may import it
	_ "google.golang.org/protobuf/types/known/durationpb"  // the same
	_ "google.golang.org/protobuf/types/known/emptypb"     // the same
	_ "google.golang.org/protobuf/types/known/fieldmaskpb" // the same
	_ "google.golang.org/protobuf/types/known/structpb"    // the same
	_ "google.golang.org/protobuf/types/known/timestamppb" // the same
	_ "google.golang.org/protobuf/types/known/wrapperspb"  // the same
)

// decimal is the one of the files of Confluent's libraries that has a type for fields.
const decimal = `syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
`

// linker makes descriptors of files, and of those that they import. The compiler of package
// protocompile does more than reading a message takes, and adds a megabyte to a program.
type linker struct {
	sources map[string]string
	files   *protoregistry.Files // that are linked
	begun   map[string]bool
}

// link returns a file. One that is nowhere counts as empty: most often it has only options, or
// rules for them.
func (l *linker) link(name string) (protoreflect.FileDescriptor, error) {
	if f, err := l.FindFileByPath(name); err == nil {
		return f, nil
	}
	if l.begun[name] {
		return nil, fmt.Errorf("%s imports itself", name)
	}
	l.begun[name] = true
	source, ok := l.sources[name]
	if !ok {
		source = `syntax = "proto3";`
	}
	handler := reporter.NewHandler(nil)
	parsed, err := parser.Parse(name, strings.NewReader(source), handler)
	if err != nil {
		return nil, err
	}
	read, err := parser.ResultFromAST(parsed, true, handler)
	if err != nil {
		return nil, err
	}
	file := read.FileDescriptorProto()
	for _, needed := range file.GetDependency() {
		if _, err := l.link(needed); err != nil {
			return nil, err
		}
	}
	interpret(file.ProtoReflect())
	linked, err := protodesc.NewFile(file, l)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: "))
	}
	return linked, l.files.RegisterFile(linked)
}

// FindFileByPath implements [protodesc.Resolver]. Of the files that this program links it knows
// those of protobuf.
func (l *linker) FindFileByPath(name string) (protoreflect.FileDescriptor, error) {
	if f, err := l.files.FindFileByPath(name); err == nil || !strings.HasPrefix(name, "google/protobuf/") {
		return f, err
	}
	return protoregistry.GlobalFiles.FindFileByPath(name)
}

// FindDescriptorByName implements [protodesc.Resolver].
func (l *linker) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := l.files.FindDescriptorByName(name); err == nil || !strings.HasPrefix(string(name), "google.protobuf.") {
		return d, err
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

// interpret sets the options of a file and of what is in it that are true, false or a name, and
// belong to protobuf itself: packed, allow_alias, features.field_presence and such.
func interpret(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				interpret(v.List().Get(i).Message())
			}
		case strings.HasSuffix(string(f.Message().Name()), "Options"):
			options := v.Message()
			if named := options.Descriptor().Fields().ByName("uninterpreted_option"); named != nil {
				for i := range options.Get(named).List().Len() {
					if u, ok := options.Get(named).List().Get(i).Message().Interface().(*descriptorpb.UninterpretedOption); ok {
						set(options, u)
					}
				}
				options.Clear(named)
			}
			delimited(m, options)
		default:
			interpret(v.Message())
		}
		return true
	})
}

// delimited makes a message of a field whose option says that it is one, of an odd form: the
// library asks for the form before it has found what the field's type is.
func delimited(m, options protoreflect.Message) {
	f, ok := m.Interface().(*descriptorpb.FieldDescriptorProto)
	o, _ := options.Interface().(*descriptorpb.FieldOptions)
	if ok && f.Type == nil && o.GetFeatures().GetMessageEncoding() == descriptorpb.FeatureSet_DELIMITED {
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	}
}

// set sets an option, if there is one of the name.
func set(m protoreflect.Message, u *descriptorpb.UninterpretedOption) {
	for i, part := range u.GetName() {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(part.GetNamePart()))
		switch {
		case f == nil || part.GetIsExtension() || f.IsList():
			return
		case i < len(u.GetName())-1:
			if f.Message() == nil {
				return
			}
			m = m.Mutable(f).Message()
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(u.GetIdentifierValue() == "true"))
		case f.Kind() == protoreflect.EnumKind:
			if v := f.Enum().Values().ByName(protoreflect.Name(u.GetIdentifierValue())); v != nil {
				m.Set(f, protoreflect.ValueOfEnum(v.Number()))
			}
		}
	}
}
