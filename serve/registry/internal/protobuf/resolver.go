package protobuf

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// resolver finds the types within Any, and extensions: those of the schema and its imports, and
// those that each program has.
type resolver struct{ *dynamicpb.Types }

func (r resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if t, err := r.Types.FindMessageByName(name); err == nil {
		return t, nil
	}
	return wellKnown(name)
}

func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return r.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
}

// wellKnown returns one of protobuf's own types. Others that this program happens to link are not
// the schema's.
func wellKnown(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if name.Parent() != "google.protobuf" {
		return nil, protoregistry.NotFound
	}
	return protoregistry.GlobalTypes.FindMessageByName(name)
}
