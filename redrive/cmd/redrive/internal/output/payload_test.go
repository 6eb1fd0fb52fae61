package output

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidingkafka/siding/internal/cases"
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
		if got := c.as.Lines(c.in, 1000); got != c.lines {
			t.Errorf("%s: Lines(%q) = %q, want %q", c.as, c.in, got, c.lines)
		}
		value, encoding := c.as.Value(c.in)
		if diff := cmp.Diff(c.value, value); diff != "" || encoding != c.encoding {
			t.Errorf("%s: Value(%q) is %s, want %s: %s", c.as, c.in, encoding, c.encoding, diff)
		}
	}
}

// A payload costs at most 16 times its bytes, and as many as are asked for, in memory and out. A
// line has the number of missing bytes.
func TestRendering_StopsAtItsBound(t *testing.T) {
	cases.Skip(t) // and the race detector takes memory
	const most = 512 << 10
	for _, unit := range []string{"[", "\x01", "\n", "v", "\u202e", "\xff", `{"a":[`, `"`} {
		for _, size := range []int{1, 9990, 256 << 10, 4 << 20} {
			text := strings.Repeat(unit, size/len(unit)+1)
			values := []string{text, text + strings.Repeat("]", len(text)), text + "1" + strings.Repeat("]}", len(text)/len(unit))}
			for _, as := range []Rendering{Text, AsJSON, Hex} {
				for _, value := range values {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					got := as.Lines([]byte(value), most)
					runtime.ReadMemStats(&after)
					memory, allowed := int(after.TotalAlloc-before.TotalAlloc)-len(value), min(16*len(value), 7*most)+512<<10
					if len(got) > min(16*len(value), most)+100 || memory > allowed {
						t.Errorf("%d bytes of %.10q as %s are %d bytes, by %d bytes of memory", len(value), value, as, len(got), memory)
					}
					if len(value) > most != strings.Contains(got, "more bytes") && as == Text && unit == "v" {
						t.Errorf("%d bytes of %.10q as %s end in %q", len(value), value, as, got[len(got)-60:])
					}
				}
			}
		}
	}
}
