package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/serve/api"
)

// editModel is the form that changes what a letter carries, before it is sent.
type editModel struct {
	Set, Unset, Patch string
	// Text is the value as it can be typed, and NoText why it cannot be; then the value may be
	// patched only.
	Text, NoText string
}

// mostDiff bounds each side of a diff, in bytes of HTML.
const mostDiff = 64 << 10

// mostTyped bounds a value that can be typed, in bytes.
const mostTyped = 64 << 10

// editOf reads a form that changes a letter. Fields have the edit for the form that confirms it.
// A value that is sent as it was shown is no change.
func editOf(q url.Values, l *api.LetterDetail) (e api.Edit, m *editModel, fields []field, err error) {
	m = &editModel{Set: lines(q.Get("set")), Unset: lines(q.Get("unset")), Patch: lines(q.Get("patch"))}
	m.Text, m.NoText = typed(l)
	keep := func(name, text string) { fields = append(fields, field{name, text}) }
	for _, line := range nonempty(m.Set) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			return e, m, nil, badInput("%q is not a header: one a line, as in currency: EUR", line)
		}
		e.SetHeaders = append(e.SetHeaders, api.SetHeader{Key: strings.TrimSpace(key), Value: api.NewBytes{Text: strings.TrimPrefix(value, " ")}})
	}
	for _, key := range nonempty(m.Unset) {
		e.UnsetHeaders = append(e.UnsetHeaders, strings.TrimSpace(key))
	}
	if strings.TrimSpace(m.Patch) != "" {
		e.Patch = []byte(m.Patch)
	}
	value, replaces := lines(q.Get("text")), q.Has("text") && m.NoText == "" && lines(q.Get("text")) != m.Text
	if q.Get("replace") != "" {
		value, replaces = lines(q.Get("value")), true
	}
	if replaces {
		e.Value, m.Text = &api.NewBytes{Text: value}, value
		keep("replace", "1")
		keep("value", value)
	}
	keep("set", m.Set)
	keep("unset", m.Unset)
	keep("patch", m.Patch)
	return e, m, slices.DeleteFunc(fields, func(f field) bool { return f.Value == "" && f.Name != "value" }), nil
}

// lineEnds are the ends of lines that a form may send; a browser sends the first one for each.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// lines returns a text as it was typed: browsers send ends of lines with a carriage return.
func lines(text string) string { return lineEnds.Replace(text) }

func nonempty(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); strings.TrimSpace(line) != "" {
			all = append(all, line)
		}
	}
	return all
}

// typed returns the value of a letter as it can be typed, or why it cannot be: what the page does
// not have whole would be lost.
func typed(l *api.LetterDetail) (text, cannot string) {
	if l.Content == nil {
		return "", "the value is for the role reader"
	}
	v := said(l.Content.Value)
	switch {
	case l.Redacted:
		return "", "the server's configuration hides parts of the letter, and typing it anew would write what stands in their place"
	case v.Problem != "":
		return "", "it cannot be decoded: " + v.Problem
	case v.Cut || v.Size > mostTyped:
		return "", "it has " + size(v.Size) + ", and at most " + size(mostTyped) + " can be typed"
	case v.Text == nil && v.Base64 != nil:
		return "", "it is not text"
	case v.Text == nil:
		return "", ""
	case strings.ContainsFunc(*v.Text, func(r rune) bool { return r == '\r' || hides(r) }):
		return "", "it has characters that a form does not keep"
	}
	return *v.Text, ""
}

// changes are what an edit does to a letter, as a page shows it.
type changes struct {
	// Letter names the letter; empty if there is but one.
	Letter         string
	Headers, Value []diffLine
	// Note is what else is to be known; empty if all was said.
	Note string
}

// changesOf compares what a letter carries before and after an edit.
func changesOf(before, after *api.Content) *changes {
	c, whole := &changes{}, true
	a, wholeA := headerLines(before)
	b, wholeB := headerLines(after)
	if a != b {
		c.Headers, whole = diffOf(a, b)
	}
	whole = whole && wholeA && wholeB
	x, y := said(before.Value), said(after.Value)
	for _, as := range []string{asJSON, asText, asHex} {
		a, b := contentOf(x, as, mostDiff), contentOf(y, as, mostDiff)
		if !canShow(&a, as) || !canShow(&b, as) {
			continue
		}
		whole = whole && !a.Part && !b.Part
		if one, other := shownAs(&a), shownAs(&b); one != other {
			var all bool
			c.Value, all = diffOf(one, other)
			whole = whole && all
			break
		}
	}
	switch {
	case !whole:
		c.Note = "Only the first part was compared."
	case c.Headers == nil && c.Value == nil:
		c.Note = "The edit changes nothing."
	}
	return c
}
