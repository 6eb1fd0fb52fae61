package avro

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

func TestEncoder_RefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, json, want string }{
		{`"int"`, `2147483648`, "does not fit an int"},
		{`"long"`, `1.5`, "no whole number"},
		{`"long"`, `9223372036854775808`, "no whole number"},
		{`"long"`, `"1"`, "has to be a number"},
		{`"long"`, `null`, "null is not a whole number"},
		{`"float"`, `1e40`, "does not fit a float"},
		{`"double"`, `"x"`, `"x" is not a number`},
		{`"boolean"`, `0`, "0 is not true or false"},
		{`"string"`, `{}`, "an object is not text"},
		{`"string"`, `"a" "b"`, "more than one value"},
		{`"string"`, `"a`, "no JSON"},
		{`"string"`, strings.Repeat("[", 1000), "deeper"},
		{`"bytes"`, `"~"`, "base64"},
		{`"bytes"`, `7`, "7 is not bytes"},
		{`"null"`, `0`, "0 is not null"},
		{`{"type":"fixed","name":"F","size":2}`, `"AAAA"`, "has 3 bytes, and F has 2"},
		{`{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`, `"123"`, "no UUID"},
		{`{"type":"fixed","name":"D","size":12,"logicalType":"duration"}`, `{"months":1}`, "form"},
		{`{"type":"enum","name":"E","symbols":["A"]}`, `"B"`, `"B" is not a symbol of E`},
		{`{"type":"array","items":"int"}`, `[1,"x"]`, `1: "x" has to be`},
		{`{"type":"array","items":"int"}`, `{}`, "not a list"},
		{`{"type":"map","values":"int"}`, `{"a":{}}`, "a: an object is not a whole number"},
		{`["null","int"]`, `"x"`, `has to be a number`},
		{`["int","boolean"]`, `"x"`, `"x" fits none of the branches int, boolean`},
		{`["int","boolean"]`, `null`, "null fits none"},
		{`{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`, `{}`, "field a of R is missing"},
		{`{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`, `{"a":1,"b":2}`, "R has no field b"},
		{`{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"int"}}]}`, `{"a":[null]}`, "a.0: null"},
		{`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `1.234`, "digits behind the point"},
		{`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `100`, "more digits than the 4"},
		{`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `1e999999999`, "too long"},
		{`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `"1/3"`, "no decimal"},
		{`{"type":"fixed","name":"D","size":1,"logicalType":"decimal","precision":2,"scale":0}`, `true`, "base64"},
		{`{"type":"int","logicalType":"date"}`, `"30.11.2026"`, "no date in the form 2006-01-02"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2026-11-30T04:25:49.0001Z"`, "finer"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2026-11-30 04:25"`, "in the form 2006-01-02T15:04:05Z"},
		{`{"type":"long","logicalType":"timestamp-nanos"}`, `"3000-01-01T00:00:00Z"`, "out of the range"},
	} {
		if got, err := parsed(t, c.schema).encode([]byte(c.json), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.60s is written as %x, %v, want %s", c.schema, c.json, got, err, c.want)
		}
	}
}

// The branch that a value had is not changed by an edit of another member.
func TestEncoder_KeepsBranches(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"record","name":"R","fields":[
		{"name":"a","type":["int","long","double"]},
		{"name":"b","type":["bytes","string"]},
		{"name":"l","type":{"type":"array","items":["null","int","long"]}},
		{"name":"n","type":"int"}]}`)
	was := []byte{2, 10, 2, 8, 'A', 'A', 'A', 'A', 4, 4, 2, 2, 4, 0, 2}
	got, err := decoded(s, was)
	if err != nil || got != `{"a":5,"b":"AAAA","l":[1,2],"n":1}` {
		t.Fatalf("%s, %v", got, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"", "", "020a02084141414104040202040002"},
		{`"n":1`, `"n":2`, "020a02084141414104040202040004"},
		{`"a":5`, `"a":6`, "020c02084141414104040202040002"},
		{`"a":5`, `"a":5.5`, "04000000000000164002084141414104040202040002"},
		{`"a":5`, `"a":{"int":5}`, "000a02084141414104040202040002"},
		{`"l":[1,2]`, `"l":[null]`, "020a02084141414102000002"},
	} {
		edit := strings.Replace(got, c.from, c.to, 1)
		back, err := s.Encode([]byte(edit), was, text.NewWriter(1000))
		if err != nil || fmt.Sprintf("%x", back) != c.want {
			t.Errorf("%s is written as %x, %v, want %s", edit, back, err, c.want)
		}
	}
}

// A merge patch removes members by null.
func TestEncoder_FillsWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"record","name":"R","fields":[
		{"name":"a","type":["null","string"]},
		{"name":"b","type":["string","null"],"default":"x"},
		{"name":"c","type":{"type":"map","values":"int"},"default":{"k":1}},
		{"name":"d","type":"bytes","default":"\u00ff"},
		{"name":"e","type":{"type":"bytes","logicalType":"decimal","precision":3,"scale":1},"default":"\u0001"},
		{"name":"f","type":"float","default":1.5},
		{"name":"g","type":{"type":"record","name":"G","fields":[{"name":"x","type":"long","default":3}]},"default":{}}]}`)
	data, err := s.encode([]byte(`{}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decoded(s, data); err != nil || got != `{"a":null,"b":"x","c":{"k":1},"d":"/w==","e":0.1,"f":1.5,"g":{"x":3}}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestSchema_RefusesToLoseByAnEdit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema string
		was    []byte
		json   string
		want   string
	}{
		{`"string"`, []byte{2, 0xff}, `"x"`, "UTF-8"},
		{`{"type":"map","values":"int"}`, []byte{4, 2, 'k', 2, 2, 'k', 4, 0}, `{}`, "twice"},
		{`"string"`, []byte{9}, `"x"`, "the value before: a length is"},
	} {
		if got, err := parsed(t, c.schema).Encode([]byte(c.json), c.was, text.NewWriter(100)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %x, %v, want %s", c.schema, got, err, c.want)
		}
	}
}

// The branches of unions within unions multiply: here each level has two that fail at its end.
func TestEncoder_GivesUpOnUnions(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"record","name":"A","fields":[{"name":"x","type":["null","A",{"type":"record","name":"B","fields":[{"name":"x","type":["null","A","B"]}]}]}]}`)
	deep := strings.Repeat(`{"x":`, 100) + `7` + strings.Repeat(`}`, 100)
	if _, err := s.encode([]byte(deep), nil); !errors.Is(err, errSteps) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzSchema(f *testing.F) {
	schemas := []string{
		all, `"bytes"`, `["null","long",{"type":"array","items":["int","string","bytes"]}]`,
		`{"type":"map","values":{"type":"map","values":["double","float","null"]}}`,
		`{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}`,
	}
	var parsed []*Schema
	for _, source := range schemas {
		s, err := Parse(source, nil)
		if err != nil {
			f.Fatal(err)
		}
		parsed = append(parsed, s)
	}
	f.Add(uint8(1), []byte("abc"), []byte(`"YQ=="`))
	f.Add(uint8(2), []byte{4, 2, 0, 2, 0}, []byte(`[1]`))
	f.Add(uint8(4), []byte{2, 2, 4, 0}, []byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, which uint8, data, edit []byte) {
		s := parsed[int(which)%len(parsed)]
		w := text.NewWriter(1 << 16)
		if s.Decode(data, w) != nil {
			return
		}
		said, err := w.Text()
		if err != nil {
			return
		}
		if !json.Valid(said) {
			t.Fatalf("%x is read as %s", data, said)
		}
		_, _ = s.Encode(edit, data, text.NewWriter(1<<16))
		if w.Whole() != nil {
			return
		}
		back, err := s.Encode(said, data, text.NewWriter(1<<16))
		if err != nil {
			t.Fatalf("%x is read as %s, and not written: %v", data, said, err)
		}
		again := text.NewWriter(1 << 20)
		if err := s.Decode(back, again); err != nil {
			t.Fatal(err)
		}
		// A map is written in the order of its keys.
		if b, _ := again.Text(); !bytes.Equal(b, said) && !sameJSON(b, said) {
			t.Fatalf("%x is read as %s, and after an edit as %s", data, said, b)
		}
	})
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}
