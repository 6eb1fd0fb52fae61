package edit

import (
	"strings"
	"testing"
)

func TestMergePatch_LeavesAloneWhatItCannotPatch(t *testing.T) {
	t.Parallel()
	e, err := compile(t, "", "--patch", `{"a":1}`)
	if err != nil {
		t.Fatal(err)
	}
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
		if _, got, err := e.Apply(nil, []byte(value), MergePatch); err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%q: %q, %v; want an error that says %q", value, got, err, want)
		}
	}
	if _, _, err := e.Apply(nil, nil, MergePatch); err == nil || !strings.Contains(err.Error(), "tombstone") {
		t.Errorf("a tombstone: %v, want an error", err)
	}
}
