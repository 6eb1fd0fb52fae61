package output

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// A Live draws frames over each other on a terminal, on its alternate screen.
type Live struct {
	s     *Screen
	size  func() (width, height int)
	frame []string // the last one
	began bool
}

// Live returns what draws on stdout; nil if that is no terminal which can.
func (s *Screen) Live() *Live {
	f, ok := s.data.(*os.File)
	if !ok || !isTerminal(f) || s.env("TERM") == "dumb" {
		return nil
	}
	return &Live{s: s, size: func() (width, height int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 80, 24
		}
		return width, height
	}}
}

// Size is how many columns and lines a frame may have.
func (l *Live) Size() (width, height int) { return l.size() }

// Draw replaces the frame. It leaves out the lines for which there is no room.
func (l *Live) Draw(frame []string) error {
	_, height := l.size()
	var b strings.Builder
	if !l.began {
		l.began = true
		b.WriteString("\x1b[?1049h\x1b[?25l") // the alternate screen, without the cursor
	}
	b.WriteString("\x1b[H")
	for i, line := range frame[:min(len(frame), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	l.frame = frame
	_, err := io.WriteString(l.s.Data(), b.String())
	return err
}

// End leaves the last frame on the terminal, where it can be scrolled to.
func (l *Live) End() error {
	if !l.began {
		return nil
	}
	l.began = false
	_, err := io.WriteString(l.s.Data(), "\x1b[?25h\x1b[?1049l"+strings.Join(l.frame, "\n")+"\n")
	return err
}

// Frame returns a screen that writes tables to w as this one does to stdout, in a width.
func (s *Screen) Frame(w io.Writer, width int) *Screen {
	return &Screen{Format: Table, Look: s.Look, Width: width, Hide: s.Hide, data: w, words: w, env: s.env, dataColours: s.dataColours, wordsColours: s.dataColours}
}

// Line writes a line of data for people, on as many lines as the width needs. Its arguments are
// escaped, as those of [Screen.Print].
func (s *Screen) Line(tone Tone, format string, args ...any) {
	text, out := fmt.Sprintf(format, s.escapeAll(args)...), s.Data()
	for {
		line, rest := wrap(text, s.Width)
		fmt.Fprintln(out, s.dataColours.paint(tone, line))
		if text = rest; text == "" {
			return
		}
	}
}

// wrap returns what of a text fits on a line, between words if it can, and the rest.
func wrap(text string, room int) (line, rest string) {
	if room <= 0 || width(text) <= room {
		return text, ""
	}
	line = measure.Truncate(text, room, "")
	if line == "" { // not even one character fits
		return text, ""
	}
	if i := strings.LastIndexByte(line, ' '); i > 0 && text[len(line)] != ' ' {
		line = line[:i]
	}
	return line, strings.TrimLeft(text[len(line):], " ")
}
