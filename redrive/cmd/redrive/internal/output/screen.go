package output

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A Screen is where a command writes: data to one stream, words and a status line to the other.
// Several goroutines may use it at once, but not one [List].
type Screen struct {
	// Format is what data is written as.
	Format Format
	// Look is how tables show times.
	Look Look
	// Width is how wide tables and the status line may be. Zero is as wide as the terminal, or any
	// width without one.
	Width int
	// Hide removes from words what must not be shown. Nil removes nothing. It is set before words
	// about records are written.
	Hide func(string) string

	data, words io.Writer
	wordsTTY    bool
	env         func(string) string
	// of data and of words
	dataColours, wordsColours palette

	mu        sync.Mutex
	hasStatus bool // a status stands on the last line
}

// NewScreen writes data to stdout and words to stderr. Without a terminal there is no status line.
// Colour is [Auto] until [Screen.SetColour]. NewScreen reads variables by env.
func NewScreen(stdout, stderr io.Writer, env func(string) string) *Screen {
	s := &Screen{
		Format: Table, Look: Look{Now: time.Now, Zone: time.Local}, data: stdout, words: stderr, env: env,
		wordsTTY: isTerminal(stderr) && env("TERM") != "dumb",
	}
	s.SetColour(Auto)
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Object writes a single thing: as a table, a line for each field that is known; as JSON of either
// form, one object with all fields.
func (s *Screen) Object(fields ...Field) error {
	if s.Format == Table {
		return s.lines(fields)
	}
	line, err := JSONObject(fields...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Data(), "%s\n", line)
	return err
}

func (s *Screen) lines(fields []Field) error {
	var lines [][2]string
	wide := 0
	for _, f := range fields {
		if text := s.Look.text(f.Cell); f.Title != "" && text != none {
			lines = append(lines, [2]string{f.Title, s.dataColours.paint(f.tone, text)})
			wide = max(wide, width(f.Title))
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(s.dataColours.paint(Heading, l[0]) + strings.Repeat(" ", wide-width(l[0])) + gap + l[1] + "\n")
	}
	_, err := io.WriteString(s.Data(), b.String())
	return err
}

// width is how wide a stream may be: as its terminal, or zero for any width.
func (s *Screen) width(stream io.Writer) int {
	if s.Width == 0 {
		return TerminalWidth(stream)
	}
	return s.Width
}

// TerminalWidth is how wide a stream's terminal is, or zero without one.
func TerminalWidth(stream io.Writer) int {
	if f, ok := stream.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// Data is stdout, for data of a form of its own. Nothing is escaped there.
func (s *Screen) Data() io.Writer { return stream{s, s.data} }

// Words is stderr, for what has a form of its own, as a log. Nothing is escaped there.
func (s *Screen) Words() io.Writer { return stream{s, s.words} }

// stream removes the status line before anything else is written.
type stream struct {
	s  *Screen
	to io.Writer
}

func (w stream) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.setStatus("")
	return w.to.Write(p)
}

// Print writes a line for people. Arguments that are text, errors among them, come from anywhere
// and are escaped.
func (s *Screen) Print(format string, args ...any) {
	fmt.Fprintf(s.Words(), format+"\n", s.escapeAll(args)...)
}

// Warn is Print for what should not be missed.
func (s *Screen) Warn(format string, args ...any) {
	fmt.Fprintf(s.Words(), "%s %s\n", s.wordsColours.paint(Caution, "warning:"), fmt.Sprintf(format, s.escapeAll(args)...))
}

func (s *Screen) escapeAll(args []any) []any {
	safe := Escape
	if s.Hide != nil {
		safe = func(text string) string { return Escape(s.Hide(text)) }
	}
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			out[i] = safe(a)
		case error:
			// joined ones have a line each
			out[i] = safe(strings.ReplaceAll(a.Error(), "\n", "; "))
		case time.Duration:
			out[i] = Duration(a)
		case fmt.Stringer:
			out[i] = safe(a.String())
		case []string:
			out[i] = safe(strings.Join(a, ", "))
		default:
			out[i] = a
		}
	}
	return out
}

// List starts a list of rows.
func (s *Screen) List() *List {
	l := &List{out: s.Data(), format: s.Format, look: s.Look}
	if l.format == Table {
		l.table = &table{out: l.out, limit: s.width(s.data), colours: s.dataColours}
	}
	return l
}

// Tables writes lists below an [Screen.Object], each behind an empty line: those with rows, where
// the format is Table. JSON has them within the object.
func (s *Screen) Tables(all ...Rows) error {
	for _, rows := range all {
		if s.Format != Table || len(rows) == 0 {
			continue
		}
		if _, err := io.WriteString(s.Data(), "\n"); err != nil {
			return err
		}
		if err := s.Rows(rows); err != nil {
			return err
		}
	}
	return nil
}

// Rows writes a list whose rows are all known.
func (s *Screen) Rows(rows Rows) error {
	list := s.List()
	if list.table != nil {
		list.table.whole = true
	}
	for _, fields := range rows {
		if err := list.Row(fields...); err != nil {
			return err
		}
	}
	return list.Close()
}

// Status writes the status line, which the next status or anything else that is written removes. An
// empty status only removes it. Without a terminal Status does nothing.
func (s *Screen) Status(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setStatus(fmt.Sprintf(format, s.escapeAll(args)...))
}

// HasStatus reports whether [Screen.Status] shows anything.
func (s *Screen) HasStatus() bool { return s.wordsTTY }

// setStatus replaces the status line. It stays on one line: of two, only the second could be
// removed again. The caller holds the lock.
func (s *Screen) setStatus(status string) {
	if !s.wordsTTY || status == "" && !s.hasStatus {
		return
	}
	if s.hasStatus {
		fmt.Fprint(s.words, "\r\x1b[K")
	}
	// less than the terminal, whose last column would move the cursor
	if room := s.width(s.words) - 1; room > 0 {
		status = cut(status, room)
	}
	fmt.Fprint(s.words, status)
	s.hasStatus = status != ""
}
