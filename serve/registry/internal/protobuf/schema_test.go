package protobuf

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

const shop = `syntax = "proto3";
package shop;
import "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "confluent/meta.proto";
import "geo/address.proto";
message Order {
  option (confluent.message_meta) = { doc: "an order" };
  int64 order_id = 1;
  uint64 big = 2;
  double d = 3;
  float f = 4;
  bool ok = 5;
  string name = 6;
  bytes raw = 7;
  State state = 8;
  repeated int32 nums = 9;
  map<string, int64> attrs = 10;
  map<int32, Order> by = 11;
  oneof how { string card = 12; Cash cash = 13; }
  Order next = 14;
  google.protobuf.Any any = 15;
  google.protobuf.Timestamp at = 16;
  google.protobuf.Duration took = 17;
  google.protobuf.Struct more = 18;
  google.protobuf.Int64Value maybe = 19;
  optional int32 opt = 20;
  geo.Address to = 21;
  google.protobuf.Empty nothing = 22;
  google.protobuf.FieldMask mask = 23;
  map<bool, string> flags = 24;
  map<uint64, string> ids = 25;
  message Cash { int32 coins = 1; message Deep { string x = 1; } }
}
enum State { UNKNOWN = 0; PAID = 1; }
message Second { string s = 1; }
`

var files = map[string]string{"geo/address.proto": `syntax = "proto3"; package geo; message Address { string street = 1; }`}

func parsed(t testing.TB, source string, imported map[string]string) *Schema {
	t.Helper()
	s, err := Parse(source, imported)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// zero is a message without its zero values.
const zero = `"order_id":0,"big":0,"d":0,"f":0,"ok":false,"name":"","raw":"","state":"UNKNOWN","nums":[],"attrs":{},"by":{},`

const noMaps = `,"flags":{},"ids":{}`

// Protobuf's own library writes the message from its JSON. What is read is written back to the same
// message.
func TestSchema_ReadsAndWritesAsProtobufDoes(t *testing.T) {
	t.Parallel()
	s := parsed(t, shop, files)
	for _, c := range []struct{ json, want string }{
		{`{}`, `{` + strings.TrimSuffix(zero, ",") + noMaps + `}`},
		{
			`{"orderId":"9007199254740993","big":"18446744073709551615","d":"NaN","f":0.1,"ok":true,"name":"é\n","raw":"/wA=","state":"PAID","nums":[1,-2],"attrs":{"b":1,"a":"2"},"by":{"10":{},"9":{}}}`,
			`{"order_id":9007199254740993,"big":18446744073709551615,"d":"NaN","f":0.1,"ok":true,"name":"é\n","raw":"/wA=","state":"PAID","nums":[1,-2],"attrs":{"a":2,"b":1},"by":{"9":{` +
				strings.TrimSuffix(zero, ",") + noMaps + `},"10":{` + strings.TrimSuffix(zero, ",") + noMaps + `}}` + noMaps + `}`,
		},
		{
			`{"cash":{"coins":3},"any":{"@type":"type.googleapis.com/shop.Second","s":"x"},"at":"2026-11-30T04:25:49.120Z","took":"1.5s","more":{"a":[1,null,{"b":true}]},"maybe":"7","opt":0,"to":{"street":"x"},"nothing":{},"mask":"a,bC"}`,
			`{` + zero + `"cash":{"coins":3},"any":{"@type":"type.googleapis.com/shop.Second","s":"x"},"at":"2026-11-30T04:25:49.120Z","took":"1.500s","more":{"a":[1,null,{"b":true}]},"maybe":7,"opt":0,"to":{"street":"x"},"nothing":{},"mask":"a,bC"` + noMaps + `}`,
		},
		{
			`{"card":"","any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"3s"},"state":7,"flags":{"true":"t","false":"f"},"ids":{"10":"x","9":"y"}}`,
			`{` + strings.Replace(zero, `"UNKNOWN"`, "7", 1) + `"card":"","any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"3s"},"flags":{"false":"f","true":"t"},"ids":{"9":"y","10":"x"}}`,
		},
		{`{"any":{}}`, `{` + zero + `"any":{}` + noMaps + `}`},
	} {
		d, err := s.message([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		m := dynamicpb.NewMessage(d)
		if err := (protojson.UnmarshalOptions{Resolver: s.types}).Unmarshal([]byte(c.json), m); err != nil {
			t.Fatal(err)
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, name, err := decoded(s, data, 0)
		if err != nil || got != c.want || name != "shop.Order" {
			t.Fatalf("%s: %v\n%s is read, want\n%s", name, err, got, c.want)
		}
		back, err := s.Encode([]byte(got), data, []int{0}, text.NewWriter(1<<20))
		if err != nil || !bytes.Equal(back, data) {
			t.Errorf("%v: %x is written, want %x", err, back, data)
		}
	}
}

func decoded(s *Schema, data []byte, indexes ...int) (got, name string, err error) {
	w := text.NewWriter(1 << 20)
	name, err = s.Decode(data, indexes, w)
	if err != nil {
		return "", name, err
	}
	b, err := w.Text()
	return string(b), name, err
}

// Java counts messages as they stand in the file: an entry of a map is none.
func TestSchema_FindsTheMessageOfIndexes(t *testing.T) {
	t.Parallel()
	s := parsed(t, shop, files)
	for want, indexes := range map[string][]int{"shop.Order": {0}, "shop.Second": {1}, "shop.Order.Cash": {0, 0}, "shop.Order.Cash.Deep": {0, 0, 0}, "shop.Order.AttrsEntry": {0, 1}} {
		if d, err := s.message(indexes); err != nil || string(d.FullName()) != want {
			t.Errorf("%v is %v, %v, want %s", indexes, d, err, want)
		}
	}
	for _, indexes := range [][]int{nil, {2}, {0, 9}, {1 << 40}} {
		if d, err := s.message(indexes); err == nil {
			t.Errorf("%v is %v", indexes, d.FullName())
		}
	}
}

func TestParse_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`syntax = "proto3"; import "gone.proto"; message A { gone.B b = 1; }`: "gone.B", `message`: "syntax error", "\x00\xff": "",
		strings.Repeat("message A {", 1_000_000): "levels deep", `syntax = "proto3"; message A { B b = 1; }`: "B",
		`syntax = "proto3"; import "the schema.proto";`: "imports itself",
	} {
		if _, err := Parse(source, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", source, err, want)
		}
	}
}

const extended = `syntax = "proto2"; package p;
message M { required int32 a = 1; extensions 100 to 200; optional group Inner = 2 { optional string s = 3; } optional bytes raw = 4 [default = "x"]; }
extend M { optional string more = 100; }`

func TestSchema_ReadsTheSecondSyntax(t *testing.T) {
	t.Parallel()
	s := parsed(t, extended, nil)
	data := []byte{8, 5, 0x13, 0x1a, 1, 'x', 0x14, 0xa2, 6, 1, 'y'}
	const want = `{"a":5,"Inner":{"s":"x"},"[p.more]":"y"}`
	got, _, err := decoded(s, data, 0)
	if err != nil || got != want {
		t.Fatalf("%s, %v, want %s", got, err, want)
	}
	if back, err := s.Encode([]byte(got), data, []int{0}, text.NewWriter(1000)); err != nil || len(back) != len(data) {
		t.Errorf("%x, %v, want %x in any order", back, err, data)
	} else if again, _, err := decoded(s, back, 0); err != nil || again != want {
		t.Errorf("%s, %v, want %s", again, err, want)
	}
	if _, err := s.Encode([]byte(`{}`), data, []int{0}, text.NewWriter(1000)); err == nil || !strings.Contains(err.Error(), "required") {
		t.Errorf("without what is required: %v", err)
	}
}

// What JSON has not wholly is shown, and an edit of it is refused.
func TestSchema_ShowsWhatAnEditWouldLose(t *testing.T) {
	t.Parallel()
	s := parsed(t, shop, files)
	any := func(url string, b []byte) []byte {
		return protowire.AppendBytes([]byte{0x7a}, append(protowire.AppendString([]byte{10}, url), protowire.AppendBytes([]byte{18}, b)...))
	}
	for _, c := range []struct {
		data         []byte
		shown, wrong string
	}{
		{[]byte{0xe8, 7, 5}, `{"order_id":0`, "shop.Order has a field 125"},
		{[]byte{0x72, 3, 0xe8, 7, 5}, `"next":{"order_id":0`, "field 125"},
		{any("type.googleapis.com/gone.X", []byte{1, 2}), `"any":{"@type":"type.googleapis.com/gone.X","value":"AQI="}`, "gone.X"},
		{any("type.googleapis.com/shop.Second", []byte{0xff}), `"value":"/w=="`, "can't be read"},
		{[]byte{0x82, 1, 12, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 16, 1}, `"at":{"seconds":9223372036854775807,"nanos":1}`, "a Timestamp of it is not valid"},
	} {
		got, _, err := decoded(s, c.data, 0)
		if err != nil || !strings.Contains(got, c.shown) {
			t.Errorf("%x is read as %s, %v, want %s", c.data, got, err, c.shown)
		}
		if _, err := s.Encode([]byte(`{}`), c.data, []int{0}, text.NewWriter(1<<16)); err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("an edit of %x: %v, want %s", c.data, err, c.wrong)
		}
	}
}

func TestSchema_RefusesMessagesOfStrangers(t *testing.T) {
	t.Parallel()
	s := parsed(t, shop, files)
	deep := []byte{}
	for range 1000 {
		deep = protowire.AppendBytes([]byte{0x72}, deep)
	}
	for want, data := range map[string][]byte{"parse": {0xff}, "UTF-8": {0x32, 1, 0xff}, "deeper": deep} {
		if got, _, err := decoded(s, data, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20x is read as %.60s, %v, want %s", data, got, err, want)
		}
	}
	if _, _, err := decoded(s, nil, 5); err == nil {
		t.Error("a message that is not there is read")
	}
}

func TestSchema_RefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := parsed(t, shop, files)
	for json, want := range map[string]string{
		`{"order_id":"x"}`: "orderId", `{"orderid":1}`: `unknown field "orderid"`, `{"card":"x","cash":{}}`: "oneof", `[]`: "unexpected", `{`: "EOF",
		`{"state":"GONE"}`: "state", `{"raw":"~"}`: "raw", `{"any":{"@type":"x/gone.X"}}`: "gone.X", `{"at":"today"}`: "today", `{"nums":[1.5]}`: "nums",
		strings.Repeat(`{"next":`, 1000): "deeper",
	} {
		if got, err := s.Encode([]byte(json), nil, []int{0}, text.NewWriter(1<<16)); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\u00a0\n") {
			t.Errorf("%.60s is written as %x, %v, want %s", json, got, err, want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	schemas := []*Schema{parsed(f, shop, files), parsed(f, extended, nil)}
	f.Add(uint8(0), []byte{8, 5, 0x7a, 4, 10, 2, 'x', 'y'}, []byte(`{"order_id":1}`))
	f.Add(uint8(1), []byte{8, 5, 0xa2, 6, 1, 'y'}, []byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, which uint8, data, edit []byte) {
		s := schemas[int(which)%len(schemas)]
		w := text.NewWriter(1 << 16)
		if _, err := s.Decode(data, []int{0}, w); err != nil {
			return
		}
		said, err := w.Text()
		if err != nil {
			return
		}
		var free any
		if err := json.Unmarshal(said, &free); err != nil {
			t.Fatalf("%x is read as %s: %v", data, said, err)
		}
		_, _ = s.Encode(edit, data, []int{0}, text.NewWriter(1<<16))
		if w.Whole() != nil {
			return
		}
		back, err := s.Encode(said, data, []int{0}, text.NewWriter(1<<16))
		if err != nil {
			if strings.Contains(err.Error(), "required") {
				return
			}
			t.Fatalf("%x is read as %s, and not written: %v", data, said, err)
		}
		if again, _, err := decoded(s, back, 0); err != nil || again != string(said) {
			t.Fatalf("%x is read as %s, and after an edit as %s, %v", data, said, again, err)
		}
	})
}
