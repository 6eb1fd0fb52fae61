package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A walker copies JSON, and hides values on the way. All but those stays as it was written.
type walker struct {
	*Rules
	text   []byte
	d      *json.Decoder
	out    bytes.Buffer
	copied int // bytes of text that are in out, or hidden
	hidden bool
}

// walk returns valid JSON at a place, without what the rules hide.
func (r *Rules) walk(text []byte, at place) (out []byte, hidden bool, err error) {
	w := walker{Rules: r, text: text, d: json.NewDecoder(bytes.NewReader(text))}
	w.d.UseNumber()
	if err := w.value(at); err != nil {
		return nil, false, err
	}
	w.out.Write(text[w.copied:])
	return w.out.Bytes(), w.hidden, nil
}

// next is where the next value or name begins.
func (w *walker) next() int {
	at := int(w.d.InputOffset())
	for at < len(w.text) && bytes.IndexByte([]byte(" \t\r\n,:"), w.text[at]) >= 0 {
		at++
	}
	return at
}

func (w *walker) value(at place) error {
	switch begin := w.next(); w.text[begin] {
	case '{':
		return w.object(at)
	case '[':
		return w.array(at)
	default:
		return w.scalar(begin, at)
	}
}

func (w *walker) object(at place) error {
	if _, err := w.d.Token(); err != nil {
		return err
	}
	for w.d.More() {
		begin := w.next()
		token, err := w.d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if shown := w.Text(name); shown != name {
			w.replace(begin, int(w.d.InputOffset()), shown)
		}
		to, hit := at.member(name)
		if err := w.inner(to, hit); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

func (w *walker) array(at place) error {
	if _, err := w.d.Token(); err != nil {
		return err
	}
	for i := 0; w.d.More(); i++ {
		to, hit := at.element(i)
		if err := w.inner(to, hit); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

// inner passes a member's or an element's value, which a path may lead to.
func (w *walker) inner(at place, hit bool) error {
	if !hit {
		return w.value(at)
	}
	begin := w.next()
	var raw json.RawMessage
	if err := w.d.Decode(&raw); err != nil {
		return err
	}
	// That nothing is there is no secret, and is often the failure.
	if text := string(raw); text != "null" && text != `""` {
		w.replace(begin, begin+len(raw), Mark)
	}
	return nil
}

func (w *walker) scalar(begin int, at place) error {
	var raw json.RawMessage
	if err := w.d.Decode(&raw); err != nil {
		return err
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	if shown := w.Text(w.within(text, at)); shown != text {
		w.replace(begin, begin+len(raw), shown)
	}
	return nil
}

// within hides parts of JSON that a string holds, if paths lead on into it. Some services put their
// payload into an envelope in this way. Each string within a string takes twice the escapes, so
// that the depth is bounded by the logarithm of the size.
func (w *walker) within(text string, at place) string {
	begin := strings.TrimLeft(text, " \t\r\n")
	if len(at) == 0 || begin == "" || begin[0] != '{' && begin[0] != '[' {
		return text
	}
	if !json.Valid([]byte(text)) {
		if at.named([]byte(text)) { // it was cut, perhaps
			return Mark
		}
		return text
	}
	shown, hidden, err := w.walk([]byte(text), at)
	switch {
	case err != nil:
		return Mark
	case hidden:
		w.hidden = true
		return string(shown)
	}
	return text
}

// replace writes text instead of a part.
func (w *walker) replace(begin, end int, shown string) {
	w.out.Write(w.text[w.copied:begin])
	b, err := json.Marshal(shown)
	if err != nil {
		panic(err) // of text there is none
	}
	w.out.Write(b)
	w.copied, w.hidden = end, true
}
