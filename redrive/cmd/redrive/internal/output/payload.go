package output

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sidingkafka/siding/internal/indent"
)

// Rendering is how the bytes of a key, a value or a header are shown.
type Rendering string

const (
	// Text shows what can be printed, and escapes the rest.
	Text Rendering = "text"
	// AsJSON sets JSON out over lines. What is no JSON is shown as text.
	AsJSON Rendering = "json"
	// Hex shows every byte.
	Hex Rendering = "hex"
)

// Renderings lists them, for help and completion.
var Renderings = []string{string(Text), string(AsJSON), string(Hex)}

// Lines shows bytes to people, on as many lines as they need, without a line break at the end. Nil
// is "null": for Kafka it differs from empty. It shows as many of them as take at most so many
// bytes, and the number of those that are left. JSON that is long only since it is nested deep is
// shown as text.
func (r Rendering) Lines(b []byte, most int) string {
	if b == nil {
		return "null"
	}
	text, n := string(b[:min(len(b), most)]), 0
	if r == AsJSON {
		if set, ok := indent.JSON(b, min(most, 8*len(b)+1<<10)); ok {
			text, b = set, []byte(set)
		}
	}
	if r == Hex {
		n = min(len(b), most/5) // a line of 16 bytes has 79
		text = strings.TrimSuffix(hex.Dump(b[:n]), "\n")
	} else {
		text, n = escape(text, "\n\t", most)
	}
	if n < len(b) {
		text += fmt.Sprintf("\n… and %d more bytes, which --output json has", len(b)-n)
	}
	return text
}

// Brief shows bytes to people on one line of a list: JSON compact, other text with its line breaks
// escaped, and what is no text in hexadecimal. It is cut after so many characters, which it shows.
func Brief(b []byte, most int) string {
	text := string(b)
	var compact bytes.Buffer
	switch {
	case b == nil:
		text = "null"
	case len(b) == 0:
		text = `""`
	case !utf8.Valid(b):
		text = hex.EncodeToString(b[:min(len(b), most)])
	case json.Compact(&compact, b) == nil:
		text = compact.String()
	}
	return measure.Truncate(Escape(text[:min(len(text), 64*most)]), most, "…")
}

// Value shows bytes to programs: what to put under "value", and under "encoding" how to read it. It
// is text, json (the value itself, its numbers as they were written), hex, or base64 for what is no
// UTF-8; nil is null.
func (r Rendering) Value(b []byte) (value any, encoding string) {
	switch {
	case b == nil:
		return nil, string(Text)
	case r == Hex:
		return hex.EncodeToString(b), string(Hex)
	case r == AsJSON && json.Valid(b) && utf8.Valid(b):
		return json.RawMessage(b), string(AsJSON)
	case utf8.Valid(b):
		return string(b), string(Text)
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}

// OfHeaders is how the headers of a record are shown: as text or hex, never as indented JSON.
func (r Rendering) OfHeaders() Rendering {
	if r == Hex {
		return r
	}
	return Text
}

// HeaderFields are a header of a record.
func HeaderFields(key string, header []byte, as Rendering) []Field {
	value, encoding := as.OfHeaders().Value(header)
	return []Field{NewField("key", "", key), NewField("value", "", value), NewField("encoding", "", encoding)}
}
