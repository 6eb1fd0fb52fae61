package mergepatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The examples of RFC 7396, appendix A.
func TestApply_ExamplesOfTheRFC(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		if got, err := Apply([]byte(c.target), []byte(c.patch)); err != nil || string(got) != c.want {
			t.Errorf("%s with %s is %s, %v; want %s", c.target, c.patch, got, err, c.want)
		}
	}
}

// A library that decodes into Go's values drops the nulls of an array, rounds numbers and changes
// the spelling of strings.
func TestApply_KeepsWhatItIsNotAskedToChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":1}`, `{"a":[null,{"b":null}]}`, `{"a":[null,{"b":null}]}`},
		{`{"a":1}`, `{"b":{"c":[null],"d":null}}`, `{"a":1,"b":{"c":[null]}}`},
		{`{"z":9007199254740993,"y":1.50,"x":1e400,"w":-0}`, `{"z":12345678901234567890.10}`, `{"z":12345678901234567890.10,"y":1.50,"x":1e400,"w":-0}`},
		{`{"<a>":"<\u003c\/é\u00e9"}`, `{"b":"&"}`, `{"<a>":"<\u003c\/é\u00e9","b":"&"}`},
		{`{"\u0061":1,"b":{ "c" : [ 1 ] }}`, `{"a":2}`, `{"\u0061":2,"b":{ "c" : [ 1 ] }}`},
		{" { \"a\" : 1 ,\n \"b\" : 2 } ", ` { "b" : { "c" : 3 } } `, `{"a":1,"b":{"c":3}}`},
		// The patch does not reach the duplicate, so it is no error.
		{`{"a":{"x":1,"x":2}}`, `{"b":1}`, `{"a":{"x":1,"x":2},"b":1}`},
		{`{"a":{"x":1,"x":2}}`, `{"a":null}`, `{}`},
		{`{}`, `{}`, `{}`},
	} {
		if got, err := Apply([]byte(c.target), []byte(c.patch)); err != nil || string(got) != c.want {
			t.Errorf("%s with %s is %s, %v; want %s", c.target, c.patch, got, err, c.want)
		}
	}
}

func TestApply_NamesAMemberThatIsThereTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":1,"a":2}`, `{"b":1}`, "the value has the member /a twice"},
		{`{"a":1,"\u0061":2}`, `{"b":1}`, "the value has the member /a twice"},
		{`{"a":{"b/c":1,"b/c":2}}`, `{"a":{"d":1}}`, "the value has the member /a/b~1c twice"},
		{`{}`, `{"b":1,"b":2}`, "the patch has the member /b twice"},
		{`{}`, `{"b":{"c":1,"c":null}}`, "the patch has the member /b/c twice"},
		{`{}`, `{"b":[0,{"c~":1,"c~":2}]}`, "the patch has the member /b/1/c~0 twice"},
		{`{}`, `{"b":`, "the patch is no JSON: unexpected end of JSON input"},
		{`{} {}`, `{"b":1}`, "the value is no JSON: invalid character '{' after top-level value"},
	} {
		if got, err := Apply([]byte(c.target), []byte(c.patch)); err == nil || err.Error() != c.want || got != nil {
			t.Errorf("%s with %s is %s, %v; want %s", c.target, c.patch, got, err, c.want)
		}
	}
}

// Each level is read once for itself and once for each level around it: a patch with 4,000 levels
// took seconds a letter.
func TestApply_RefusesAPatchThatIsNestedTooDeep(t *testing.T) {
	t.Parallel()
	nested := func(open, end string, levels int) string {
		return strings.Repeat(open, levels) + "1" + strings.Repeat(end, levels)
	}
	for _, c := range []struct{ target, patch, want string }{
		{`{}`, nested(`{"a":`, `}`, 100), ""},
		{nested(`{"a":`, `}`, 4_000), nested(`{"a":`, `}`, 100), ""},
		{`{}`, `{"a":` + nested(`[`, `]`, 99) + `}`, ""},
		{`{}`, nested(`{"a":`, `}`, 101), "the patch is nested deeper than 100 levels"},
		{`{}`, `{"a":` + nested(`[`, `]`, 100) + `}`, "the patch is nested deeper than 100 levels"},
		{nested(`{"a":`, `}`, 4_000), nested(`{"a":`, `}`, 4_000), "the patch is nested deeper than 100 levels"},
	} {
		got, err := Apply([]byte(c.target), []byte(c.patch))
		if text := fmt.Sprint(err); err == nil && c.want != "" || err != nil && text != c.want || err == nil && !json.Valid(got) {
			t.Errorf("%.20s… with %.20s… of %d bytes: %d bytes, %.80s; want %q", c.target, c.patch, len(c.patch), len(got), text, c.want)
		}
	}
}

// naive is the RFC's pseudocode, over decoded JSON.
func naive(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, ok := target.(map[string]any)
	if !ok {
		merged = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = naive(merged[name], value)
		}
	}
	return merged
}

func decode(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // keep each digit
	err = d.Decode(&value)
	return value, err
}

// same fails the test unless Apply returns what the reference does.
func same(t interface{ Fatalf(string, ...any) }, target, patch []byte) {
	before, err1 := decode(target)
	change, err2 := decode(patch)
	if err1 != nil || err2 != nil {
		t.Fatalf("%v, %v", err1, err2)
	}
	want := naive(before, change)
	text, err := Apply(target, patch)
	if err != nil {
		t.Fatalf("%s with %s: %v", target, patch, err)
	}
	got, err := decode(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s with %s is %s, %v; want %v", target, patch, text, err, want)
	}
}

// No input causes a panic. Valid JSON without duplicate members is merged as by the reference.
func FuzzApply(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[null,{"b":null}]}`},
		{`[1,2]`, `{"a":"b","c":null}`},
		{`{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`},
		{`{"n":9007199254740993.10,"\ud800":1}`, `{"n":1e400,"�":null}`},
		{` `, `{`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, target, patch []byte) {
		got, err := Apply(target, patch)
		if err == nil && !json.Valid(got) {
			t.Fatalf("%q with %q is %q", target, patch, got)
		}
		switch ok := json.Valid(target) && json.Valid(patch); {
		case !ok && err == nil:
			t.Fatalf("%q with %q is %q, and one of them is no JSON", target, patch, got)
		case ok && Check(target) == nil && Check(patch) == nil:
			same(t, target, patch)
		case ok && Check(patch) != nil && err == nil:
			t.Fatalf("%q with %q is %q, and %v", target, patch, got, Check(patch))
		}
	})
}

func TestApplyToObject_LeavesAloneWhatItCannotPatch(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":              "the value is no JSON",
		"text":          "the value is no JSON",
		`{"a":1} x`:     "the value is no JSON",
		`{"a":`:         "the value is no JSON",
		`[{"a":1}]`:     "the value is no JSON object",
		`null`:          "the value is no JSON object",
		` "x"`:          "the value is no JSON object",
		"\xef\xbb\xbf":  "the value is no JSON",
		`{"b":1,"b":2}`: "the value has the member /b twice",
	} {
		if got, err := ApplyToObject([]byte(value), []byte(`{"a":1}`)); err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%q: %q, %v; want an error that says %q", value, got, err, want)
		}
	}
	if got, err := ApplyToObject([]byte(` {"a":2}`), []byte(` {"a":1}`)); string(got) != `{"a":1}` || err != nil {
		t.Errorf("an object: %s, %v", got, err)
	}
	for patch, want := range map[string]string{` [1]`: "is no JSON object", `{`: "is no JSON"} {
		if err := CheckObject([]byte(patch)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the patch %s: %v, want %q", patch, err, want)
		}
		if _, err := ApplyToObject([]byte(`{}`), []byte(patch)); err == nil || !strings.Contains(err.Error(), "the patch "+want) {
			t.Errorf("with the patch %s: %v, want %q", patch, err, want)
		}
	}
}
