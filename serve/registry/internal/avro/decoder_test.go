package avro

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// A few bytes claim more than a machine has, or never end.
func TestDecoder_RefusesWhatLies(t *testing.T) {
	t.Parallel()
	long := func(n ...int64) (b []byte) {
		for _, n := range n {
			b = binary.AppendVarint(b, n)
		}
		return b
	}
	const nested = `{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}`
	for _, c := range []struct {
		schema string
		data   []byte
		want   string
	}{
		{`"string"`, long(1 << 40), "too early"},
		{`"string"`, long(-1), "length is -1"},
		{`"string"`, nil, "too early"},
		{`"string"`, append(long(1), "xy"...), "1 bytes are left"},
		{`"long"`, bytes.Repeat([]byte{0xff}, 11), "64 bits"},
		{`"int"`, long(1 << 40), "an int is"},
		{`"boolean"`, nil, "too early"},
		{`"float"`, []byte{1}, "too early"},
		{`"double"`, []byte{1}, "too early"},
		{`["null","long"]`, long(2), "number 2 of 2"},
		{`["null","long"]`, long(-1), "number -1 of 2"},
		{`{"type":"enum","name":"E","symbols":["A"]}`, long(1), "number 1 of 1"},
		{`{"type":"array","items":"null"}`, long(1 << 60), "as JSON"},
		{`{"type":"array","items":"null"}`, long(-1<<63, 0), "too many"},
		{`{"type":"array","items":{"type":"record","name":"R","fields":[]}}`, long(1 << 60), "as JSON"},
		{`{"type":"array","items":"long"}`, long(1 << 60), "too early"},
		{`{"type":"map","values":"null"}`, long(1 << 60), "too early"},
		{nested, nil, "deeper"},
		{`{"type":"fixed","name":"F","size":100000000}`, nil, "too early"},
		{`{"type":"bytes","logicalType":"decimal","precision":60000,"scale":60000}`, []byte{1}, "is not shown"},
		{`{"type":"bytes","logicalType":"decimal","precision":60000}`, make([]byte, 2000), "is not shown"},
	} {
		if got, err := decoded(parsed(t, c.schema), c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.20x is read as %.40s, %v, want %s", c.schema, c.data, got, err, c.want)
		}
	}
	deep := parsed(t, `{"type":"record","name":"R","fields":[{"name":"aVeryLongNameOfAField","type":["null","R"]}]}`)
	if _, err := decoded(deep, bytes.Repeat([]byte{2}, 1000)); err == nil || len(err.Error()) > 500 {
		t.Errorf("the error is %v", err)
	}
}

// Writers give blocks of a list a size in bytes, and several blocks.
func TestDecoder_ReadsBlocks(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"array","items":"long"}`)
	if got, err := decoded(s, []byte{2, 2, 3, 4, 4, 6, 0}); err != nil || got != `[1,2,3]` {
		t.Errorf("%s, %v", got, err)
	}
}

// Confluent's libraries write no length before bytes that are the whole value.
func TestSchema_BytesAloneHaveNoLength(t *testing.T) {
	t.Parallel()
	s := parsed(t, `"bytes"`)
	got, err := decoded(s, []byte("abc"))
	if err != nil || got != `"YWJj"` {
		t.Errorf("%s, %v", got, err)
	}
	if back, err := s.Encode([]byte(`"YWI="`), []byte("abc"), text.NewWriter(100)); err != nil || string(back) != "ab" {
		t.Errorf("%q, %v", back, err)
	}
}

// Times of which there is no text stay numbers, and are written back.
func TestDecoder_OddTimesStayNumbers(t *testing.T) {
	t.Parallel()
	for schema, all := range map[string]map[int64]string{
		`{"type":"long","logicalType":"timestamp-millis"}`: {1 << 62: "4611686018427387904", -1: `"1969-12-31T23:59:59.999Z"`, 0: `"1970-01-01T00:00:00Z"`},
		`{"type":"long","logicalType":"timestamp-nanos"}`:  {1: `"1970-01-01T00:00:00.000000001Z"`, -1 << 63: `"1677-09-21T00:12:43.145224192Z"`},
		`{"type":"int","logicalType":"date"}`:              {1<<31 - 1: "2147483647", -1: `"1969-12-31"`},
		`{"type":"int","logicalType":"time-millis"}`:       {-1: "-1", 86400000: "86400000", 1: `"00:00:00.001"`},
		`{"type":"long","logicalType":"time-micros"}`:      {86400000000 - 1: `"23:59:59.999999"`},
	} {
		s := parsed(t, schema)
		for n, want := range all {
			data := binary.AppendVarint(nil, n)
			got, err := decoded(s, data)
			if err != nil || got != want {
				t.Errorf("%s: %d is %s, %v, want %s", schema, n, got, err, want)
			}
			if back, err := s.Encode([]byte(got), data, text.NewWriter(100)); err != nil || !bytes.Equal(back, data) {
				t.Errorf("%s: %s is written as %x, %v, want %x", schema, got, back, err, data)
			}
		}
	}
}
