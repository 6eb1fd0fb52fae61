package console

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sidingkafka/siding/internal/indent"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// How much a page shows of a letter: of its content in bytes of HTML, of what is not text in bytes,
// and of its headers and its history by their number. The API and redrive show have more.
const (
	mostValue   = 512 << 10
	mostKeyText = 16 << 10
	mostHeader  = 4 << 10
	mostHeaders = 64 << 10 // of all
	mostListed  = 256
	mostHex     = 16 << 10
	// mostWords bounds each other text.
	mostWords = 8 << 10
)

// The ways to show a value.
const (
	asJSON = "json"
	asText = "text"
	asHex  = "hex"
)

// content is a key, a header or a value as a page shows it.
type content struct {
	// As is how it is shown. Ways are those that are possible.
	As   string
	Ways []string
	Text string
	Size string
	// Null is Kafka's null, which is not an empty value.
	Null, Empty bool
	// Part reports that some of it is missing, and Note what.
	Part bool
	Note string
	// Schema is by what it was decoded, and Undecoded why a schema did not help.
	Schema, Undecoded string
}

// contentOf shows bytes in a way that the reader asked for, or else in the first that is possible.
// It takes at most so many bytes of HTML.
func contentOf(b api.Bytes, as string, most int) content {
	var text string
	if b.Text != nil {
		text = *b.Text
	}
	n := len(text) + len(b.Base64)
	c := content{Size: size(b.Size), Null: b.Text == nil && b.Base64 == nil, Empty: n == 0}
	if c.Null || c.Empty {
		return c
	}
	// JSON that is long only since it is nested deep is shown as it was written.
	most = min(most, 2*n+32<<10)
	var indented string
	if !b.Cut && text != "" && len(text) <= most && (text[0] == '{' || text[0] == '[' || as == asJSON) {
		lines, isJSON := indent.JSON([]byte(text), most)
		is, all := shown(lines, most)
		if isJSON && all == len(lines) {
			indented = is
			c.Ways = append(c.Ways, asJSON)
		}
	}
	if text != "" {
		c.Ways = append(c.Ways, asText)
	}
	c.Ways = append(c.Ways, asHex)
	c.As = c.Ways[0]
	if slices.Contains(c.Ways, as) {
		c.As = as
	}
	if as != "" && as != c.As {
		c.Note = fmt.Sprintf("It cannot be shown as %s. ", as)
	}
	switch c.As {
	case asJSON:
		c.Text = indented
	case asText:
		c.Text, n = shown(text, most)
	default:
		n = min(n, most/5, mostHex) // a line of 16 bytes has 79
		data := b.Base64
		if text != "" {
			data = []byte(text[:n])
		}
		c.Text = strings.TrimSuffix(hex.Dump(data[:n]), "\n")
	}
	if c.Part = n < b.Size; c.Part {
		c.Note += fmt.Sprintf("These are the first %s of %s.", size(n), c.Size)
	}
	return c
}

// headerRow is a header of the record.
type headerRow struct {
	Name  string
	Value content
}

// headerRows returns the first headers, and how many more there are.
func headerRows(c *api.Content) (rows []headerRow, more int) {
	left := mostHeaders
	for i, h := range c.Headers {
		if i == mostListed || left <= 0 {
			return rows, len(c.Headers) - i + c.MoreHeaders
		}
		name, _ := shown(h.Key, mostHeader)
		row := headerRow{name, contentOf(h.Value, asText, mostHeader)}
		left -= len(name) + len(row.Value.Text)
		rows = append(rows, row)
	}
	return rows, c.MoreHeaders
}

// canShow reports whether content can be shown in a way; what is null or empty can be in each.
func canShow(c *content, as string) bool { return c.Null || c.Empty || c.As == as }

func shownAs(c *content) string {
	switch {
	case c.Null:
		return "null"
	case c.Empty:
		return "empty"
	}
	return c.Text
}

// headerLines returns headers as text, and whether these are all of them.
func headerLines(c *api.Content) (text string, all bool) {
	rows, more := headerRows(c)
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.Name + ": " + shownAs(&r.Value) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), more == 0
}

// size returns a number of bytes.
func size(n int) string {
	switch {
	case n >= 10<<20:
		return number.Format(int64(n>>20)) + " MiB"
	case n >= 10<<10:
		return number.Format(int64(n>>10)) + " KiB"
	case n == 1:
		return "1 byte"
	}
	return number.Format(int64(n)) + " bytes"
}

// visible makes characters visible that would hide or turn around what stands beside them: control
// characters, and those that change the direction of text. It cuts a text that is long.
func visible(text string) string {
	is, n := shown(text, mostWords)
	if n < len(text) {
		is += "…"
	}
	return is
}

// shown is [visible] for as much of a text as takes at most so many bytes of HTML. It returns how
// many bytes of the text these are.
func shown(text string, most int) (is string, n int) {
	length, hidden := 0, false
	for i, r := range text {
		if length += cost(r); length > most {
			text = text[:i]
			break
		}
		hidden = hidden || hides(r)
	}
	if !hidden {
		return text, len(text)
	}
	var b strings.Builder
	b.Grow(min(length, most))
	for _, r := range text {
		if hides(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String(), len(text)
}

// cost returns how many bytes a character takes in HTML.
func cost(r rune) int {
	switch {
	case hides(r):
		return len("⟨U+0000⟩")
	case strings.ContainsRune(`<>&'"+`, r):
		return len("&#34;")
	}
	return utf8.RuneLen(r)
}

func hides(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u200e', '\u200f', '\u061c', '\u200b', '\u2060', '\ufeff':
		return true
	}
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
