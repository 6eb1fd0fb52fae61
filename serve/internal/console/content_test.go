package console

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/api"
)

// A value is shown as what it is, and in each other way that is possible.
func TestContentOf_ShowsWhatItCan(t *testing.T) {
	t.Parallel()
	text := func(s string) api.Bytes { return api.Bytes{Text: &s, Size: len(s)} }
	for _, test := range []struct {
		b             api.Bytes
		as            string
		ways, is, has string
	}{
		{text(`{"a":12345678901234567890}`), "", "json text hex", "json", `"a": 12345678901234567890`},
		{text(`{"a":1}`), "text", "json text hex", "text", `{"a":1}`},
		{text(`{"a":1}`), "hex", "json text hex", "hex", "7b 22 61 22"},
		{text(`{"a":`), "", "text hex", "text", `{"a":`},
		{text(`plain`), "json", "text hex", "text", "plain"},
		{text("a\x1b[31m\u202eb"), "", "text hex", "text", "a⟨U+001B⟩[31m⟨U+202E⟩b"},
		{api.Bytes{Base64: []byte{0xff, 0xfe}, Size: 2}, "json", "hex", "hex", "ff fe"},
		{api.Bytes{}, "", "", "", ""},
		{text(""), "json", "", "", ""},
	} {
		c := contentOf(test.b, test.as, mostValue)
		if got := strings.Join(c.Ways, " "); got != test.ways || c.As != test.is || !strings.Contains(c.Text, test.has) {
			t.Errorf("%+v as %q: %+v", test.b, test.as, c)
		}
		if test.as != "" && test.as != c.As && !c.Null && !c.Empty && c.Note == "" {
			t.Errorf("%+v as %q: nothing says why it is shown as %s", test.b, test.as, c.As)
		}
	}
	if c := contentOf(api.Bytes{}, "", mostValue); !c.Null {
		t.Errorf("null is %+v", c)
	}
	if c := contentOf(text(""), "", mostValue); c.Null || !c.Empty {
		t.Errorf("an empty value is %+v", c)
	}
}

// A large value is cut, between two characters, and the page says so.
func TestContentOf_CutsLargeValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", mostValue)
	c := contentOf(api.Bytes{Text: &long, Size: len(long)}, "", mostValue-1)
	if c.As != asText || len(c.Text) != mostValue-2 || strings.ContainsRune(c.Text, '�') || !strings.Contains(c.Note, "first") {
		t.Errorf("%d bytes of text, %q", len(c.Text), c.Note)
	}
	raw := bytes.Repeat([]byte{0xff}, 1<<20)
	if c := contentOf(api.Bytes{Base64: raw, Size: 5 << 20, Cut: true}, "", mostValue); len(c.Text) > 6*mostHex || !strings.Contains(c.Note, "5,120 KiB") {
		t.Errorf("%d bytes of hex, %q", len(c.Text), c.Note)
	}
}
