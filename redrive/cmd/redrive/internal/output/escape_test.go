package output

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func FuzzEscape_NothingReachesATerminalRaw(f *testing.F) {
	f.Add("plain \\n text")
	f.Add("\x1b[2J\u009b\x7f\xff\u202e\U000e0001")
	f.Add("\u200b \\u009b \u2028 <&>")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Escape(text); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(got) {
			t.Errorf("Escape(%q) = %q", text, got)
		}
		line, err := JSONObject(NewField("v", "", text))
		if err != nil {
			t.Fatal(err)
		}
		if strings.IndexFunc(string(line), func(r rune) bool { return r < ' ' || hidden(r) }) >= 0 {
			t.Errorf("a control character stands raw in %q", line)
		}
		var got struct{ V string }
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if utf8.ValidString(text) && got.V != text {
			t.Errorf("read back %q, want %q", got.V, text)
		}
	})
}
