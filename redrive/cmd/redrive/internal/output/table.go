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

// table writes rows in pages, so that the first one is there soon. The first page decides which
// columns there are, and how wide they are: they never change while the operator reads. What is
// wider on a later page is cut in a terminal; without one its row alone moves to the right.
type table struct {
	out     io.Writer
	limit   int // the terminal's width, 0 for none
	colours palette

	mu      sync.Mutex
	whole   bool    // all rows are one page, since all are known
	columns []Field // those without a title are not shown
	widths  []int   // of the columns, once the first page is written
	page    [][]string
	below   []string // what stands below the page's rows
	tones   [][]Tone // of the page's cells
	timer   *time.Timer
	err     error
}

func (t *table) add(fields []Field, look Look) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == nil {
		t.columns = slices.Clone(fields)
	}
	row, tones := make([]string, len(fields)), make([]Tone, len(fields))
	below := ""
	for i, f := range fields {
		tones[i] = f.tone
		if text := look.text(f.Cell); f.below && text != none {
			below += t.indented(text)
		}
		if t.columns[i].Title != "" {
			row[i] = look.text(f.Cell)
		}
	}
	t.page, t.tones, t.below = append(t.page, row), append(t.tones, tones), append(t.below, below)
	switch {
	case t.whole:
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
	var b strings.Builder
	if t.widths == nil {
		titles := make([]string, len(t.columns))
		for i, c := range t.columns {
			titles[i] = c.Title
		}
		t.fit(titles)
		b.WriteString(t.colours.paint(Heading, t.line(titles, nil)) + "\n")
	}
	for i, row := range t.page {
		b.WriteString(t.line(row, t.tones[i]) + "\n" + t.below[i])
	}
	t.page, t.tones, t.below = t.page[:0], t.tones[:0], t.below[:0]
	_, t.err = io.WriteString(t.out, b.String())
}

// indented is text below a row, on as many lines as the terminal needs.
func (t *table) indented(text string) string {
	var b strings.Builder
	for text != "" {
		part := text
		if t.limit > leastCut {
			part = measure.Truncate(text, t.limit-len(gap), "")
		}
		b.WriteString(gap + part + "\n")
		text = text[len(part):]
	}
	return b.String()
}

// line is a row as text. A cell that is wider than its column and is not cut moves the next ones,
// as far as they have no room to spare.
func (t *table) line(cells []string, tones []Tone) string {
	var b strings.Builder
	at, end := 0, 0 // where the row is, and where the column ends
	for i, c := range t.columns {
		if c.Title == "" {
			continue
		}
		if end > 0 {
			b.WriteString(gap)
			at, end = at+len(gap), end+len(gap)
		}
		end += t.widths[i]
		text := cells[i]
		if t.limit > 0 && t.cuts(i) {
			text = cut(text, max(end-at, 1))
		}
		fill := max(end-at-width(text), 0)
		at += width(text) + fill
		if tones != nil {
			text = t.colours.paint(tones[i], text)
		}
		if c.right {
			b.WriteString(strings.Repeat(" ", fill) + text)
		} else {
			b.WriteString(text + strings.Repeat(" ", fill))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// cuts reports whether a column is cut rather than wider than it was. The first column is the one
// by which one acts, and a part of a number is another number.
func (t *table) cuts(i int) bool { return t.columns[i].cut || i > 0 && !t.columns[i].right }

// fit decides the widths by the first page: as wide as what is in it, and where there is room, as
// wide as what may come. It makes a line as narrow as the terminal: it cuts the columns that may be
// cut, the widest first. Where that is not enough, it does without columns, and then cuts all
// columns of text but the first. At last it does without those that are no use when they are cut.
func (t *table) fit(titles []string) {
	natural := make([]int, len(t.columns))
	for _, row := range append(t.page, titles) {
		for i, text := range row {
			natural[i] = max(natural[i], width(text))
		}
	}
	t.widths = slices.Clone(natural)
	for t.limit > 0 && t.total() > t.limit {
		if i := t.highest(func(i int, c Field) int { return t.cuttable(i, c.cut) }); i >= 0 {
			t.widths[i]--
		} else if i := t.highest(func(_ int, c Field) int { return c.spare }); i >= 0 {
			t.columns[i].Title = ""
			t.widths = slices.Clone(natural)
		} else if i := t.highest(func(i int, _ Field) int { return t.cuttable(i, t.cuts(i)) }); i >= 0 {
			t.widths[i]--
		} else if i := t.highest(func(_ int, c Field) int { return c.last }); i >= 0 {
			t.columns[i].Title = ""
		} else {
			return
		}
	}
	if t.limit == 0 || t.whole {
		return
	}
	last := -1
	for i, c := range t.columns {
		if c.Title != "" {
			t.widths[i] += min(max(c.least-t.widths[i], 0), t.limit-t.total())
			last = i
		}
	}
	if last > 0 && !t.columns[last].right { // nothing follows that it could move
		t.widths[last] += t.limit - t.total()
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
