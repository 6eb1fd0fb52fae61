package console

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// How much of a record a page shows, in bytes. The API has more.
const (
	mostText   = 256 << 10
	mostHex    = 16 << 10
	mostHeader = 4 << 10
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
	// Note says what is missing of it.
	Note string
}

// raw returns the bytes, and whether they are text.
func raw(b api.Bytes) (data []byte, text bool) {
	if b.Text != nil {
		return []byte(*b.Text), true
	}
	return b.Base64, false
}

// contentOf shows bytes in a way that somebody asked for, or else in the first that is possible.
func contentOf(b api.Bytes, as string, most int) content {
	data, text := raw(b)
	c := content{Size: size(b.Size), Null: b.Text == nil && b.Base64 == nil, Empty: len(data) == 0}
	if c.Null || c.Empty {
		return c
	}
	var indented bytes.Buffer
	if text && !b.Cut && len(data) <= most && (data[0] == '{' || data[0] == '[' || as == asJSON) && json.Indent(&indented, data, "", "  ") == nil && indented.Len() <= 4*most {
		c.Ways = append(c.Ways, asJSON)
	}
	if text {
		c.Ways = append(c.Ways, asText)
	}
	c.Ways = append(c.Ways, asHex)
	c.As = c.Ways[0]
	for _, way := range c.Ways {
		if way == as {
			c.As = way
		}
	}
	if as != "" && as != c.As {
		c.Note = fmt.Sprintf("It cannot be shown as %s. ", as)
	}
	shown := data
	switch c.As {
	case asJSON:
		c.Text = visible(indented.String())
	case asText:
		shown = data[:min(len(data), most)]
		for !utf8.Valid(shown) {
			shown = shown[:len(shown)-1] // a character was cut
		}
		c.Text = visible(string(shown))
	default:
		shown = data[:min(len(data), most, mostHex)]
		c.Text = strings.TrimSuffix(hex.Dump(shown), "\n")
	}
	if len(shown) < b.Size {
		c.Note += fmt.Sprintf("These are the first %s of %s.", size(len(shown)), c.Size)
	}
	return c
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
// characters, and those that change the direction of text.
func visible(text string) string {
	if !strings.ContainsFunc(text, hides) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hides(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
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
