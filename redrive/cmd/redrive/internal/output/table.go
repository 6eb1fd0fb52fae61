package output

import (
	"io"
	"strings"
	"sync"
	"time"
)

const (
	pageRows = 50
	pageWait = 200 * time.Millisecond
	gap      = "  "
)

// table writes rows in pages, so that the first one is there soon and the columns are as wide as what is in them. A
// column never gets narrower again: a long list stays aligned, and moves to the right where it must.
type table struct {
	out     io.Writer
	columns []Column
	limit   int // the terminal's width, 0 for none
	heading func(string) string

	mu     sync.Mutex
	widths []int
	page   [][]string
	begun  bool
	timer  *time.Timer
	err    error
}

func (t *table) add(row []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.page = append(t.page, row)
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
	if !t.begun {
		t.widths = make([]int, len(t.columns))
		for i, c := range t.columns {
			t.widths[i] = width(c.Title)
		}
	}
	for _, row := range t.page {
		for i, text := range row {
			t.widths[i] = max(t.widths[i], width(text))
		}
	}
	var b strings.Builder
	if !t.begun {
		titles := make([]string, len(t.columns))
		for i, c := range t.columns {
			titles[i] = c.Title
		}
		b.WriteString(t.heading(t.line(titles)) + "\n")
		t.begun = true
	}
	for _, row := range t.page {
		b.WriteString(t.line(row) + "\n")
	}
	t.page = t.page[:0]
	_, t.err = io.WriteString(t.out, b.String())
}

func (t *table) line(cells []string) string {
	var b strings.Builder
	over := t.over()
	for i, text := range cells {
		if i > 0 {
			b.WriteString(gap)
		}
		w := t.widths[i]
		if t.columns[i].Cut {
			w = max(w-over, min(w, 12))
			text = cut(text, w)
		}
		fill := strings.Repeat(" ", max(0, w-width(text)))
		if t.columns[i].Right {
			b.WriteString(fill + text)
		} else {
			b.WriteString(text + fill)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// over is by how much each column that may be cut has to be narrower for the line to fit the terminal.
func (t *table) over() int {
	if t.limit <= 0 {
		return 0
	}
	total, cut := len(gap)*(len(t.columns)-1), 0
	for i, w := range t.widths {
		total += w
		if t.columns[i].Cut {
			cut++
		}
	}
	if cut == 0 || total <= t.limit {
		return 0
	}
	return (total - t.limit + cut - 1) / cut
}
