package output

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRendering_ShowsAValueAsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		as       Rendering
		in       []byte
		lines    string
		value    any
		encoding string
	}{
		{Text, nil, "null", nil, "text"},
		{Hex, nil, "null", nil, "text"},
		{Text, []byte{}, "", "", "text"},
		{Text, []byte("a\tb\n\x1b[2J"), "a\tb\n" + `\x1b[2J`, "a\tb\n\x1b[2J", "text"},
		{Text, []byte("\xff\x00"), `\xff\x00`, "/wA=", "base64"},
		{AsJSON, []byte(`{"n":9007199254740993,"e":{}}`), "{\n  \"n\": 9007199254740993,\n  \"e\": {}\n}", json.RawMessage(`{"n":9007199254740993,"e":{}}`), "json"},
		{AsJSON, []byte("{\"s\":\"\u009b\"}"), "{\n  \"s\": \"\\u009b\"\n}", json.RawMessage("{\"s\":\"\u009b\"}"), "json"},
		{AsJSON, []byte("no json"), "no json", "no json", "text"},
		{AsJSON, []byte("\"\xff\""), `"\xff"`, "Iv8i", "base64"},
		{Hex, []byte("ab"), "00000000  61 62                                             |ab|", "6162", "hex"},
	} {
		if got := c.as.Lines(c.in); got != c.lines {
			t.Errorf("%s: Lines(%q) = %q, want %q", c.as, c.in, got, c.lines)
		}
		value, encoding := c.as.Value(c.in)
		if diff := cmp.Diff(c.value, value); diff != "" || encoding != c.encoding {
			t.Errorf("%s: Value(%q) is %s, want %s: %s", c.as, c.in, encoding, c.encoding, diff)
		}
	}
}
