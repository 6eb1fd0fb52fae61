package protobuf

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Options that say how bytes are read count. Others, and files that have only those, do not.
func TestLinker_SetsOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		data   []byte
		want   string
	}{
		{`syntax = "proto3"; enum E { option allow_alias = true; A = 0; B = 0; C = 1; } message M { repeated int32 n = 1 [packed = false, (gone.rule).x = 1]; E e = 2; }`, []byte{8, 1, 8, 2, 16, 1}, `{"n":[1,2],"e":"C"}`},
		{`syntax = "proto3"; import "gone/rules.proto"; import public "confluent/type/decimal.proto"; option java_package = "x"; option (gone.file) = { a: "b" };
			message M { option (gone.m) = "x"; .confluent.type.Decimal d = 1 [json_name = "D", (gone.f) = { a: [1] }]; oneof o { option (gone.o) = 1; int32 x = 2; } }`, []byte{10, 2, 24, 2}, `{"d":{"value":"","precision":0,"scale":2}}`},
		{`edition = "2023"; message M { int32 a = 1; N inner = 2 [features.message_encoding = DELIMITED]; message N { int32 b = 1 [features.field_presence = IMPLICIT]; } }`, []byte{19, 20}, `{"inner":{"b":0}}`},
		{`edition = "2023"; option features.field_presence = IMPLICIT; message M { int32 a = 1; repeated int32 l = 2 [features.repeated_field_encoding = EXPANDED]; }`, []byte{16, 1}, `{"a":0,"l":[1]}`},
		{`syntax = "proto2"; message M { optional int32 a = 1 [default = 5]; optional E e = 2; enum E { A = 1; } repeated group G = 3 { required bool b = 1; } }`, []byte{27, 8, 1, 28, 16, 9}, `{"e":9,"G":[{"b":true}]}`},
	} {
		s := parsed(t, c.source, nil)
		if got, _, err := decoded(s, c.data, 0); err != nil || got != c.want {
			t.Errorf("%.80s: %s, %v, want %s", c.source, got, err, c.want)
		}
	}
}

// Imports of imports, and those that others may see.
func TestLinker_FollowsImports(t *testing.T) {
	t.Parallel()
	s := parsed(t, `syntax = "proto3"; package a.b; import "one.proto"; message M { c.T t = 1; b.U u = 2; M.N n = 3; message N { U own = 1; message U { int32 deep = 1; } } }`, map[string]string{
		"one.proto": `syntax = "proto3"; import public "two.proto"; import "three.proto"; package a.b; message U { a.d.V v = 1; }`,
		"two.proto": `syntax = "proto3"; package a.c; message T { int32 x = 1; }`, "three.proto": `syntax = "proto3"; package a.d; message V { int32 y = 1; }`,
	})
	if got, _, err := decoded(s, []byte{10, 2, 8, 1, 18, 4, 10, 2, 8, 2, 26, 4, 10, 2, 8, 3}, 0); err != nil || got != `{"t":{"x":1},"u":{"v":{"y":2}},"n":{"own":{"deep":3}}}` {
		t.Errorf("%s, %v", got, err)
	}
}

// What this program links besides protobuf's own types is no part of a schema.
func TestLinker_KnowsNoTypesOfTheProgram(t *testing.T) {
	t.Parallel()
	name, of := "program.proto", "program"
	x := "X"
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: &name, Package: &of, MessageType: []*descriptorpb.DescriptorProto{{Name: &x}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := protoregistry.GlobalFiles.RegisterFile(f); err != nil {
		t.Fatal(err)
	}
	if err := protoregistry.GlobalTypes.RegisterMessage(dynamicpb.NewMessageType(f.Messages().Get(0))); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(`syntax = "proto3"; import "program.proto"; message M { program.X x = 1; }`, nil); err == nil {
		t.Error("its file is read")
	}
	s := parsed(t, `syntax = "proto3"; import "program.proto"; message M { program.X x = 1; }`, map[string]string{"program.proto": `syntax = "proto3"; package program; message X { int32 n = 1; }`})
	if got, _, err := decoded(s, []byte{10, 2, 8, 1}, 0); err != nil || got != `{"x":{"n":1}}` {
		t.Errorf("instead of a file of its name: %s, %v", got, err)
	}
	s = parsed(t, `syntax = "proto3"; import "google/protobuf/any.proto"; message M { google.protobuf.Any a = 1; }`, nil)
	if got, _, err := decoded(s, []byte{10, 12, 10, 10, '/', 'p', 'r', 'o', 'g', 'r', 'a', 'm', '.', 'X'}, 0); err != nil || !strings.Contains(got, `"value":""`) {
		t.Errorf("its type is read: %s, %v", got, err)
	}
}
