package output

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A frame that is taller than the terminal would scroll it, and the next one would stand below.
func TestLive_DrawsFramesOverEachOther(t *testing.T) {
	t.Parallel()
	s, data, _ := fixed(Table)
	if s.Live() != nil {
		t.Error("a buffer is no terminal")
	}
	l := &Live{s: s, size: func() (width, height int) { return 20, 2 }}
	for _, frame := range [][]string{{"a", "b", "c"}, {"d"}} {
		if err := l.Draw(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[?1049h\x1b[?25l\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J" + "\x1b[Hd\x1b[K\x1b[J" + "\x1b[?25h\x1b[?1049ld\n"
	if got := data.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	data.Reset()
	if err := (&Live{s: s}).End(); err != nil || data.Len() > 0 {
		t.Errorf("nothing was drawn, and it leaves %q: %v", data.String(), err)
	}
}

// A narrow terminal breaks a sentence between its words, and loses nothing of it.
func TestLine_BreaksBetweenWords(t *testing.T) {
	t.Parallel()
	const text = "letter orders.dlq/0/305 failed again with \x1b[31m, 世界 and averylongwordthathasnoroom at all"
	for width := 2; width < 100; width++ {
		s, data, _ := fixed(Table)
		s.Width = width
		s.Line(Bad, "%s", text)
		for line := range strings.Lines(data.String()) {
			if n := measure.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d wide of %d: %q", n, width, line)
			}
		}
		whole := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
		if got := data.String(); whole(got) != whole(Escape(text)) || !utf8.ValidString(got) || width >= 24 && !strings.HasPrefix(got, "letter orders.dlq/0/305") {
			t.Errorf("in %d columns: %q", width, got)
		}
	}
}
