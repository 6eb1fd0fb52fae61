package output

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// Colour paints the text and nothing else: not the space that aligns columns, and not JSON. What it
// means is in the text too.
func TestScreen_ColourChangesNoText(t *testing.T) {
	t.Parallel()
	write := func(c Colour, f Format) string {
		s, all, _ := fixed(f)
		s.words = all
		s.SetColour(c)
		s.Warn("%s", "slow")
		if err := s.Object(NewField("state", "STATE", "done").Toned(Good), NewField("sent", "SENT", 3)); err != nil {
			t.Fatal(err)
		}
		l := s.List()
		add(t, l, NewField("state", "STATE", "aborted").Toned(Bad), NewField("sent", "SENT", 3).Right().Toned(Caution))
		add(t, l, NewField("state", "STATE", "done"), NewField("sent", "SENT", 4000).Right())
		end(t, l)
		return all.String()
	}
	plain := write(Never, Table)
	if auto := write(Auto, Table); auto != plain {
		t.Errorf("without a terminal: %q, want %q", auto, plain)
	}
	painted := write(Always, Table)
	const want = "\x1b[33mwarning:\x1b[0m slow\n" +
		"\x1b[1mSTATE\x1b[0m  \x1b[32mdone\x1b[0m\n\x1b[1mSENT\x1b[0m   3\n" +
		"\x1b[1mSTATE    SENT\x1b[0m\n\x1b[31maborted\x1b[0m     \x1b[33m3\x1b[0m\ndone     4000\n"
	if painted != want {
		t.Errorf("painted: %q, want %q", painted, want)
	}
	if bare := regexp.MustCompile(`\x1b\[[0-9]*m`).ReplaceAllString(painted, ""); bare != plain || painted == plain {
		t.Errorf("the colours hide a change: %q, without colour %q", painted, plain)
	}
	if always, never := write(Always, JSONL), write(Never, JSONL); len(always) != len(never)+len("\x1b[33m\x1b[0m") {
		t.Errorf("JSON is painted: %q", always)
	}
}

// Colour is on in a terminal, unless the user turns it off.
func TestScreen_ColourIsWhatTheUserWants(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	defer terminal.Close()
	for _, c := range []struct {
		colour    Colour
		name, val string
		want      bool
	}{
		{Auto, "TERM", "xterm", true},
		{Auto, "NO_COLOR", "1", false},
		{Auto, "TERM", "dumb", false},
		{Always, "NO_COLOR", "1", true},
		{Always, "TERM", "dumb", true},
		{Never, "TERM", "xterm", false},
	} {
		s := NewScreen(terminal, new(bytes.Buffer), func(name string) string { return map[string]string{c.name: c.val}[name] })
		s.SetColour(c.colour)
		if got := s.dataColours.on; got != c.want {
			t.Errorf("%s, %s=%s: %v, want %v", c.colour, c.name, c.val, got, c.want)
		}
		if got, want := s.wordsColours.on, c.colour == Always; got != want {
			t.Errorf("%s, stderr in a file: %v, want %v", c.colour, got, want)
		}
	}
}
