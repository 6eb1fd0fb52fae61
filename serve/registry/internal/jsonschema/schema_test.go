package jsonschema

import (
	"fmt"
	"strings"
	"testing"
)

func TestSchema_ChecksWhatItWrites(t *testing.T) {
	t.Parallel()
	s, err := Parse(`{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","type":"object","properties":{
		"id":{"type":"integer"},"to":{"$ref":"address.json"}},"required":["id"],"additionalProperties":false}`,
		map[string]string{"address.json": `{"type":"object","properties":{"street":{"type":"string","pattern":"^[A-Z]"}}}`})
	if err != nil || s.Name() != "Order" {
		t.Fatalf("%s, %v", s.Name(), err)
	}
	for json, want := range map[string]string{
		` {"id": 12345678901234567890, "to":{"street":"X"}}`: "", `{"id":"x"}`: "id", `{}`: "missing property", `{"id":1,"x":1}`: "x",
		`{"id":1,"to":{"street":"x"}}`: "pattern", `{"id":1e1001}`: "too large", `{`: "no JSON", "\"\xff\"": "no JSON", strings.Repeat("[", 600) + strings.Repeat("]", 600): "deeper",
	} {
		got, err := s.Encode([]byte(json))
		if want == "" && (err != nil || string(got) != json) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%.60s is written as %s, %v, want %q", json, got, err, want)
		}
	}
	// What breaks the schema may be why somebody looks.
	if got, err := s.Decode([]byte(`{"id": "x"}`)); err != nil || string(got) != `{"id": "x"}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := s.Decode([]byte(`{"id"`)); err == nil {
		t.Error("what is no JSON is read")
	}
}

// A schema leads to no file and to no address: only to what the registry says it refers to.
func TestSchema_AsksNobodyElse(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`{"$ref":"file:///etc/hostname"}`: "not among", `{"$ref":"http://127.0.0.1:1/x.json"}`: "not among", `{"$schema":"http://127.0.0.1:1/x.json"}`: "not among",
		`{"$id":"http://e/a/root.json","$ref":"other.json"}`: "", `{"pattern":"(?=x)"}`: "(?=x)",
	} {
		s, err := Parse(source, map[string]string{"other.json": `{"type":"integer"}`})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Encode([]byte(`1`)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

// Each schema names the next one twice, so that the last one is compared 2^60 times.
func TestSchema_GivesUpOnSchemasThatMultiply(t *testing.T) {
	t.Parallel()
	for form, draft := range map[string]string{
		`{"allOf":[{"$ref":"#/definitions/s%d"},{"$ref":"#/definitions/s%[1]d"}]}`:                      "http://json-schema.org/draft-07/schema#",
		`{"properties":{"x":{"allOf":[{"$ref":"#/definitions/s%d"},{"$ref":"#/definitions/s%[1]d"}]}}}`: "https://json-schema.org/draft/2020-12/schema",
	} {
		var b strings.Builder
		fmt.Fprintf(&b, `{"$schema":%q,"$ref":"#/definitions/s0","definitions":{"s60":{"type":["object","integer"]}`, draft)
		for i := range 60 {
			fmt.Fprintf(&b, `,"s%d":%s`, i, fmt.Sprintf(form, i+1))
		}
		s, err := Parse(b.String()+"}}", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Encode([]byte(strings.Repeat(`{"x":`, 60) + "1" + strings.Repeat("}", 60))); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("%.60s: %v", b.String(), err)
		}
	}
}

func TestParse_RefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"", "{", `{"maximum":1e9999}`, strings.Repeat("[", 1000) + strings.Repeat("]", 1000)} {
		if _, err := Parse(source, nil); err == nil {
			t.Errorf("%.20s is read", source)
		}
		if _, err := Parse("{}", map[string]string{"x": source}); err == nil {
			t.Errorf("%.20s is read as a reference", source)
		}
	}
	if s, err := Parse(`true`, nil); err != nil || s.Name() != "" {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := Parse(`{"title":7,"$id":"urn:x"}`, nil); err != nil || s.Name() != "urn:x" {
		t.Errorf("%v, %v", s, err)
	}
}
