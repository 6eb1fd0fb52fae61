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

// Screen is where a command writes: data to one stream, words and a status line to the other. It is safe for use by
// several goroutines; a [List] is not.
type Screen struct {
	// Format is what data is written as. Empty means Table.
	Format Format
	// Look is how tables show times.
	Look Look
	// Width is how wide tables and the status line may be. Zero is as wide as the terminal, or any width without one.
	Width int

	data, words       io.Writer
	dataTTY, wordsTTY bool
	bold, warning     func(string) string

	mu     sync.Mutex
	status string // what stands on the last line now
}

// NewScreen writes data to stdout and words to stderr. Without a terminal there is neither colour nor a status line;
// with one, NO_COLOR (any value, see no-color.org) and TERM=dumb take the colour away. Variables are read by env.
func NewScreen(stdout, stderr io.Writer, env func(string) string) *Screen {
	s := &Screen{data: stdout, words: stderr, dataTTY: isTerminal(stdout), wordsTTY: isTerminal(stderr)}
	dumb := env("TERM") == "dumb"
	s.wordsTTY = s.wordsTTY && !dumb
	colour := env("NO_COLOR") == "" && !dumb
	s.bold = paint("1", colour && s.dataTTY)
	s.warning = paint("33", colour && s.wordsTTY)
	return s
}

func paint(code string, on bool) func(string) string {
	if !on {
		return func(s string) string { return s }
	}
	return func(s string) string { return "\x1b[" + code + "m" + s + "\x1b[0m" }
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// List starts a list of rows.
func (s *Screen) List(columns ...Column) *List {
	l := &List{out: s.Data(), format: s.format(), look: s.Look, columns: columns}
	if l.format == Table {
		var shown []Column
		for _, c := range columns {
			if c.Title != "" {
				shown = append(shown, c)
			}
		}
		l.table = &table{out: l.out, columns: shown, limit: s.width(), heading: s.bold}
	}
	return l
}

// A Field is one line of what is told of a single thing.
type Field struct {
	Column
	Cell any
}

// NewField is a field by its key in JSON and its title in a table; without a title only JSON shows
// it.
func NewField(key, title string, cell any) Field {
	return Field{Column: Column{Key: key, Title: title}, Cell: cell}
}

// Object writes a single thing: a table as a line for each field that
// is known, JSON of either form as one object with all of them.
func (s *Screen) Object(fields ...Field) error {
	if s.format() == Table {
		return s.lines(fields)
	}
	var (
		columns []Column
		cells   []any
	)
	for _, f := range fields {
		columns, cells = append(columns, f.Column), append(cells, f.Cell)
	}
	line, err := object(columns, cells)
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
			lines = append(lines, [2]string{f.Title, text})
			wide = max(wide, width(f.Title))
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(s.bold(l[0]) + strings.Repeat(" ", wide-width(l[0])) + gap + l[1] + "\n")
	}
	_, err := io.WriteString(s.Data(), b.String())
	return err
}

func (s *Screen) format() Format {
	if s.Format == "" {
		return Table
	}
	return s.Format
}

func (s *Screen) width() int {
	if s.Width > 0 {
		return s.Width
	}
	if f, ok := s.data.(*os.File); ok && s.dataTTY {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// Data is stdout, for data of a form of its own. Nothing is escaped there.
func (s *Screen) Data() io.Writer { return dataWriter{s} }

// dataWriter takes the status line away before data comes to stand in its place.
type dataWriter struct{ s *Screen }

func (w dataWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.dataTTY {
		defer w.s.redraw(w.s.erase())
	}
	return w.s.data.Write(p)
}

// Words is stderr, for what has a form of its own, as a log. Nothing is escaped there.
func (s *Screen) Words() io.Writer { return wordsWriter{s} }

type wordsWriter struct{ s *Screen }

func (w wordsWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	defer w.s.redraw(w.s.erase())
	return w.s.words.Write(p)
}

// Say writes a line for people. Arguments that are text, errors among them, come from anywhere and are escaped.
func (s *Screen) Say(format string, args ...any) {
	fmt.Fprintf(s.Words(), format+"\n", escapeAll(args)...)
}

// Warn is Say for what should not be missed.
func (s *Screen) Warn(format string, args ...any) {
	fmt.Fprintf(s.Words(), "%s %s\n", s.warning("warning:"), fmt.Sprintf(format, escapeAll(args)...))
}

func escapeAll(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			out[i] = Escape(a)
		case error:
			out[i] = Escape(strings.ReplaceAll(a.Error(), "\n", "; ")) // joined ones have a line each
		case time.Duration:
			out[i] = Duration(a)
		case fmt.Stringer:
			out[i] = Escape(a.String())
		case []string:
			out[i] = Escape(strings.Join(a, ", "))
		default:
			out[i] = a
		}
	}
	return out
}

// Status replaces the line that says how far it is; an empty one takes it away. Without a terminal it does nothing.
func (s *Screen) Status(format string, args ...any) {
	if !s.wordsTTY {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.redraw(fmt.Sprintf(format, escapeAll(args)...))
}

// StatusOf is Status with the first of several forms for which the terminal is wide enough: where none is, the last one is cut.
func (s *Screen) StatusOf(forms ...string) {
	room := s.room()
	for i, form := range forms {
		if form = Escape(form); room == 0 || width(form) <= room || i == len(forms)-1 {
			s.Status("%s", form)
			return
		}
	}
}

// HasStatus reports whether [Screen.Status] shows anything.
func (s *Screen) HasStatus() bool { return s.wordsTTY }

// erase takes the status line away and returns it. The caller holds the lock.
func (s *Screen) erase() string {
	was := s.status
	if was != "" {
		fmt.Fprint(s.words, "\r\x1b[K")
	}
	s.status = ""
	return was
}

func (s *Screen) redraw(status string) {
	if status != "" {
		fmt.Fprint(s.words, s.fit(status))
	}
	s.status = status
}

// fit keeps the status on one line: of two, only the second could be taken away again.
func (s *Screen) fit(status string) string {
	if w := s.room(); w > 0 {
		return cut(status, w)
	}
	return status
}

// room is how wide a status may be: less than the terminal, whose last column would move the cursor. Zero is any width.
func (s *Screen) room() int {
	if s.Width > 0 {
		return s.Width - 1
	}
	if f, ok := s.words.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
			return w - 1
		}
	}
	return 0
}
