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
// column never gets narrower again for what is in it: a long list stays aligned, and moves to the right where it must.
// Where a later page is too wide for the terminal, it goes on without some columns, under a heading of its own.
type table struct {
	out     io.Writer
	columns []Column
	limit   int // the terminal's width, 0 for none
	heading func(string) string

	mu     sync.Mutex
	cut    int    // how wide columns may be that can be cut
	gone   []bool // columns for which there is no room
	tight  bool   // and still there is too little: all columns of text may be cut but the first, by which one acts
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
	moved := t.makeRoom()
	t.cut = t.cuttingAt()
	var b strings.Builder
	if moved || !t.begun {
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
	for i, text := range cells {
		if t.gone[i] {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(gap)
		}
		w := t.widths[i]
		if t.cuts(i) {
			w = min(w, t.cut)
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

// leastCut is how much of a column is left that is cut.
const leastCut = 12

// cuts reports whether what is in a column may be cut.
func (t *table) cuts(i int) bool {
	return t.columns[i].Cut || t.tight && i > 0 && !t.columns[i].Right
}

// makeRoom takes columns out, those that are spared first, until the others fit the terminal as narrow as they may be cut.
// It reports whether there are others than before.
func (t *table) makeRoom() (moved bool) {
	if t.gone == nil {
		t.gone = make([]bool, len(t.columns))
	}
	for t.limit > 0 {
		total, next := -len(gap), -1
		for i, c := range t.columns {
			if t.gone[i] {
				continue
			}
			w := t.widths[i]
			if c.Cut {
				w = min(w, leastCut)
			}
			total += len(gap) + w
			if c.Spare > 0 && (next < 0 || c.Spare > t.columns[next].Spare) {
				next = i
			}
		}
		if total <= t.limit || next < 0 {
			t.tight = total > t.limit
			break
		}
		t.gone[next], moved = true, true
	}
	return moved
}

// cuttingAt is how wide columns may be that can be cut, for the line to fit the terminal: the widest are cut first.
func (t *table) cuttingAt() int {
	fixed, widest := -len(gap), 0
	var cuts []int
	for i, w := range t.widths {
		switch {
		case t.gone[i]:
			continue
		case t.cuts(i):
			cuts, widest = append(cuts, w), max(widest, w)
		default:
			fixed += w
		}
		fixed += len(gap)
	}
	at := max(widest, leastCut)
	if t.limit <= 0 {
		return at
	}
	for ; at > leastCut; at-- {
		total := fixed
		for _, w := range cuts {
			total += min(w, at)
		}
		if total <= t.limit {
			break
		}
	}
	return at
}
