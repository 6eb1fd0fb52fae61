package console

import (
	"encoding/hex"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// letterList is a page of letters. What all of them have in common is said once.
type letterList struct {
	Rows []letterRow
	// Common is what all letters have in common. The columns of the rest follow.
	Common                                []string
	Says, Key, Attempts                   bool
	Class, Reason, Group, Version, States bool
	// Unread is why words of some letters are missing; empty if none are.
	Unread string
}

// letterRow is a letter in a list.
type letterRow struct {
	api.Letter
	Link   string
	Failed moment
	State  string
	Open   bool
	// Message is what its last failure said, and Key the beginning of its key. Unread reports that
	// these and Attempts are not known.
	Message, Key string
	Attempts     int
	Unread       bool
}

// newLetterList returns a list of the letters that a filter selects. glances are what is known of
// them by having read them, and unread is why some of that is missing. keys says whether the reader
// may see keys.
func newLetterList(all []api.Letter, glances map[selection.Place]operate.Glance, unread error, keys bool, f *Filter, path string, now time.Time) letterList {
	l := letterList{Says: true, Key: keys, Attempts: true}
	whole, first := true, *f
	first.Cursor = ""
	for i := range all {
		row := letterRowOf(all[i], path, now)
		row.Link += first.query()
		g, ok := glances[selection.Place{Partition: row.Partition, Offset: row.Offset}]
		if row.Unread = !ok; ok {
			row.Message, row.Attempts, row.Key = g.Message, g.Attempts, keyText(g.Key)
			if g.Cut {
				row.Message += "…"
			}
		}
		whole = whole && ok
		l.Rows = append(l.Rows, row)
	}
	if unread != nil && !whole {
		l.Unread = unread.Error()
	}
	l.fold(whole)
	return l
}

// fold says once what all letters have in common, in place of a column. whole reports that all were
// read.
func (l *letterList) fold(whole bool) {
	if len(l.Rows) == 0 {
		return
	}
	fold := func(column *bool, may bool, of func(*letterRow) string, words func(string) string) {
		first := of(&l.Rows[0])
		for i := range l.Rows {
			may = may && of(&l.Rows[i]) == first
		}
		if *column = *column && !may; may {
			l.Common = append(l.Common, words(first))
		}
	}
	several := whole && len(l.Rows) > 1 // of one letter its row says it
	l.Class, l.Reason, l.Group, l.Version, l.States = true, true, true, true, true
	fold(&l.Class, true, func(r *letterRow) string { return r.Class }, nameOf)
	fold(&l.Says, several, func(r *letterRow) string { return r.Message }, func(s string) string { return "“" + s + "”" })
	fold(&l.Reason, true, func(r *letterRow) string { return r.Reason }, reasonText)
	fold(&l.Attempts, several, func(r *letterRow) string { return number.Of(int64(r.Attempts), "attempt") }, same)
	fold(&l.Key, several && l.Key, func(r *letterRow) string { return r.Key }, named("key"))
	fold(&l.Group, true, func(r *letterRow) string { return r.Group }, named("group"))
	fold(&l.Version, true, func(r *letterRow) string { return r.Version }, named("version"))
	fold(&l.States, true, func(r *letterRow) string { return r.State }, same)
}

func same(s string) string { return s }

// named returns the words for a value that may not be known.
func named(what string) func(string) string {
	return func(value string) string {
		if value == "" {
			return what + " unknown"
		}
		return what + " " + value
	}
}

func reasonText(reason string) string {
	if words := reasonWords[headers.Reason(reason)]; words != "" {
		return words
	}
	return named("reason")(reason)
}

// keyText returns the beginning of a key as a list shows it.
func keyText(b api.Bytes) string {
	text := ""
	switch {
	case b.Text != nil && *b.Text == "":
		return "empty"
	case b.Text != nil:
		text = *b.Text
	case b.Base64 != nil:
		text = hex.EncodeToString(b.Base64)
	default:
		return "none"
	}
	if b.Cut {
		text += "…"
	}
	return text
}

func letterRowOf(l api.Letter, path string, now time.Time) letterRow {
	row := letterRow{Letter: l, Link: letterPath(path, l.Partition, l.Offset), Failed: momentOf(l.FailedAt, now), State: l.State}
	row.Open = isOpen(l.State)
	if row.State == "" {
		row.State = "open"
	}
	return row
}
