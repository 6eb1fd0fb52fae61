package output

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	pageRows = 50
	pageWait = 200 * time.Millisecond
	gap      = "  "
	leastCut = 12 // what is left of a column that is cut
)

// table writes rows in pages, so that the first one is there soon and the columns are as wide as
// what is in them. The first page decides which columns there are. A column never gets narrower for
// what is in it: a long list stays aligned, moves to the right where it must, and is cut where the
// terminal ends.
type table struct {
	out     io.Writer
	limit   int // the terminal's width, 0 for none
	colours palette

	mu      sync.Mutex
	columns []Field // those without a title are not shown
	natural []int   // the widths of what was written so far
	widths  []int   // what the terminal has room for
	page    [][]string
	tones   [][]Tone // of the page's cells
	timer   *time.Timer
	err     error
}

func (t *table) add(fields []Field, look Look) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == nil {
		t.columns, t.natural = slices.Clone(fields), make([]int, len(fields))
	}
	row, tones := make([]string, len(fields)), make([]Tone, len(fields))
	for i, f := range fields {
		tones[i] = f.tone
		if t.columns[i].Title != "" {
			row[i] = look.text(f.Cell)
		}
	}
	t.page, t.tones = append(t.page, row), append(t.tones, tones)
	switch {
	case len(t.page) >= pageRows:
		t.write()
	case len(t.page) == 1 && t.timer == nil:
		// A filter may let the next row through in a minute.
		t.timer = time.AfterFunc(pageWait, func() { _ = t.flush() }) // the next row gets the error
	case len(t.page) == 1:
		t.timer.Reset(pageWait)
	}
	return t.err
}

func (t *table) flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write()
	return t.err
}

// write writes the page. The caller holds the lock.
func (t *table) write() {
	if t.timer != nil {
		t.timer.Stop()
	}
	if len(t.page) == 0 || t.err != nil {
		return
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	for _, row := range append(t.page, titles) {
		for i, text := range row {
			t.natural[i] = max(t.natural[i], width(text))
		}
	}
	first := t.widths == nil
	t.fit(first)
	var b strings.Builder
	if first {
		b.WriteString(t.colours.paint(Heading, t.line(titles, nil)) + "\n")
	}
	for i, row := range t.page {
		b.WriteString(t.line(row, t.tones[i]) + "\n")
	}
	t.page, t.tones = t.page[:0], t.tones[:0]
	_, t.err = io.WriteString(t.out, b.String())
}

func (t *table) line(cells []string, tones []Tone) string {
	var parts []string
	for i, c := range t.columns {
		if c.Title == "" {
			continue
		}
		text := cut(cells[i], t.widths[i])
		fill := strings.Repeat(" ", t.widths[i]-width(text))
		if tones != nil {
			text = t.colours.paint(tones[i], text)
		}
		if c.right {
			text = fill + text
		} else {
			text += fill
		}
		parts = append(parts, text)
	}
	return strings.TrimRight(strings.Join(parts, gap), " ")
}

// fit makes a line as narrow as the terminal. It cuts the columns that may be cut, the widest
// first. Where that is not enough, the first page does without columns, and then all columns of
// text are cut but the first, by which one acts.
func (t *table) fit(first bool) {
	t.widths = slices.Clone(t.natural)
	for t.limit > 0 && t.total() > t.limit {
		if i := t.highest(func(i int, c Field) int { return t.cuttable(i, c.cut) }); i >= 0 {
			t.widths[i]--
		} else if i := t.highest(func(_ int, c Field) int { return c.spare }); first && i >= 0 {
			t.columns[i].Title = ""
			t.widths = slices.Clone(t.natural)
		} else if i := t.highest(func(i int, c Field) int { return t.cuttable(i, i > 0 && !c.right) }); i >= 0 {
			t.widths[i]--
		} else {
			return
		}
	}
}

// cuttable is the width of a column that may be cut, and zero for any other.
func (t *table) cuttable(i int, may bool) int {
	if may && t.widths[i] > leastCut {
		return t.widths[i]
	}
	return 0
}

// highest is the shown column with the highest score above zero, or -1.
func (t *table) highest(score func(int, Field) int) int {
	at, most := -1, 0
	for i, c := range t.columns {
		if s := score(i, c); c.Title != "" && s > most {
			at, most = i, s
		}
	}
	return at
}

// total is the width of a line.
func (t *table) total() int {
	sum := -len(gap)
	for i, c := range t.columns {
		if c.Title != "" {
			sum += len(gap) + t.widths[i]
		}
	}
	return sum
}
