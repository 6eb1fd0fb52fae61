package registry

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sidingkafka/siding/serve/payload"
)

func TestFrameOf_FindsWhatNamesTheSchema(t *testing.T) {
	t.Parallel()
	const guid = "123e4567-e89b-42d3-a456-426614174000"
	raw, _ := hex.DecodeString(strings.ReplaceAll(guid, "-", ""))
	header := func(name string, b []byte) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: b} }
	byGUID := append([]byte{1}, raw...)
	for _, c := range []struct {
		value   []byte
		headers []kgo.RecordHeader
		want    string
		data    string
	}{
		{nil, nil, "", ""},
		{[]byte{}, nil, "", ""},
		{[]byte("order"), nil, "", ""},
		{[]byte{0, 0, 0, 0}, nil, "", ""},
		{framed(0, 'x'), nil, "", ""},
		{framed(1<<31, 'x'), nil, "", ""},
		{byGUID, nil, "", ""}, // nobody writes it before a value
		{framed(7), nil, "schema 7", ""},
		{framed(7, 'x'), nil, "schema 7", "x"},
		{framed(7, 'x'), []kgo.RecordHeader{header("__key_schema_id", byGUID)}, "schema 7", "x"},
		{[]byte("x"), []kgo.RecordHeader{header("__value_schema_id", byGUID)}, "schema " + guid, "x"},
		{[]byte("x"), []kgo.RecordHeader{header("__value_schema_id", framed(5)), header("__value_schema_id", byGUID)}, "schema " + guid, "x"},
		{framed(7, 'x'), []kgo.RecordHeader{header("__value_schema_id", framed(5))}, "schema 5", string(framed(7, 'x'))},
		{framed(7, 'x'), []kgo.RecordHeader{header("__value_schema_id", byGUID[:16])}, "error", ""},
		{framed(7, 'x'), []kgo.RecordHeader{header("__value_schema_id", nil)}, "error", ""},
		{framed(7, 'x'), []kgo.RecordHeader{header("__value_schema_id", framed(0))}, "error", ""},
		{nil, []kgo.RecordHeader{header("__value_schema_id", byGUID)}, "", ""}, // a tombstone
	} {
		f, err := frameOf(value(c.value, c.headers...), payload.Value)
		got, data := "", ""
		if err != nil {
			got = "error"
		} else if f != nil {
			got, data = f.String(), string(f.data)
		}
		if got != c.want || data != c.data {
			t.Errorf("%x %q: %q with %q, %v, want %q with %q", c.value, c.headers, got, data, err, c.want, c.data)
		}
	}
}

// The key, and messages within others: the header has their indexes, and the value nothing of it.
func TestRegistry_ReadsByHeaders(t *testing.T) {
	t.Parallel()
	fk := fake(t)
	fk.SeedSchema("k", 1, 1, sr.Schema{Type: sr.TypeProtobuf, Schema: `syntax = "proto3"; message A { message B { int32 n = 1; } }`})
	is, _ := fk.GetSchema("k", 1)
	raw, _ := hex.DecodeString(strings.ReplaceAll(is.GUID, "-", ""))
	r := open(t, payload.Registry{URL: fk.URL()})
	rec := &kgo.Record{Key: []byte{8, 5}, Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "__key_schema_id", Value: append(append([]byte{1}, raw...), 4, 0, 0)}}}
	d, err := r.Decode(t.Context(), rec, payload.Key)
	if err != nil || string(d.JSON) != `{"n":5}` || d.Type != "A.B" || d.GUID != is.GUID || d.ID != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	if b, err := r.Encode(t.Context(), rec, payload.Key, []byte(`{"n":6}`)); err != nil || !bytes.Equal(b, []byte{8, 6}) {
		t.Errorf("%x, %v", b, err)
	}
	if d, err := r.Decode(t.Context(), rec, payload.Value); d != nil || err != nil {
		t.Errorf("the value is read as %v, %v", d, err)
	}
	for _, broken := range [][]byte{{}, {0xff}, {1}, {4, 0}, {200, 1}, {2, 1}} {
		rec.Headers[0].Value = append(append([]byte{1}, raw...), broken...)
		if d, err := r.Decode(t.Context(), rec, payload.Key); err == nil {
			t.Errorf("with the indexes %x it is read as %s", broken, d.JSON)
		}
	}
}
