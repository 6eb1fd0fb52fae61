package output

import "github.com/mattn/go-runewidth"

// measure ignores the locale, which the library would read by itself: the same data gives the same
// table everywhere.
var measure = &runewidth.Condition{StrictEmojiNeutral: true}

// width is how many cells of a terminal the text takes.
func width(s string) int { return measure.StringWidth(s) }

// cut shortens text to a width, and shows that it did.
func cut(s string, w int) string { return measure.Truncate(s, w, "…") }

// Cut shortens text to a width, and shows that it did. Zero is any width.
func Cut(s string, w int) string {
	if w <= 0 {
		return s
	}
	return cut(s, w)
}
