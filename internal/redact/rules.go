package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Mark stands where something was hidden.
const Mark = "[redacted]"

// Rules are what is hidden. Nil hides nothing. They are safe for concurrent use.
type Rules struct {
	paths    place
	headers  []string
	patterns []*regexp.Regexp

	from   []string     // of the paths: where each stands
	parsed atomic.Int64 // letters whose value is JSON
}

// A Text is the text of a rule, and where it stands in the user's words: "--redact".
type Text struct{ Text, From string }

// Parse reads rules: paths and names of headers may be several by comma, a pattern is a regular
// expression of package regexp. Without any it returns nil. Its error has every problem, one a
// line.
func Parse(paths, headers, patterns []Text) (*Rules, error) {
	r := &Rules{}
	var errs []error
	for _, t := range paths {
		p, err := parsePaths(t.Text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.From, err))
		}
		r.paths = append(r.paths, p...)
		r.from = append(r.from, slices.Repeat([]string{t.From}, len(p))...)
	}
	for _, t := range headers {
		for name := range strings.SplitSeq(t.Text, ",") {
			if name = strings.TrimSpace(name); name == "" {
				errs = append(errs, fmt.Errorf("%s: %q has an empty name", t.From, t.Text))
			}
			r.headers = append(r.headers, name)
		}
	}
	for _, t := range patterns {
		p, err := regexp.Compile(t.Text)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", t.From, err))
		case p.MatchString(""):
			errs = append(errs, fmt.Errorf("%s: %q fits the empty text, so it would mark every place", t.From, t.Text))
		default:
			r.patterns = append(r.patterns, p)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(r.paths)+len(r.headers)+len(r.patterns) == 0 {
		return nil, nil
	}
	return r, nil
}

// Idle returns the paths that led to nothing in the letters so far, and the number of these
// letters. Letters whose value is no JSON do not count: all of it is hidden.
func (r *Rules) Idle() (texts []Text, letters int64) {
	if r == nil || r.parsed.Load() == 0 {
		return nil, 0
	}
	for i, p := range r.paths {
		t := Text{p[len(p)-1].use.text, r.from[i]}
		if !p[len(p)-1].use.found.Load() && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	return texts, r.parsed.Load()
}

// Text hides what the patterns fit.
func (r *Rules) Text(s string) string {
	if r == nil {
		return s
	}
	for _, p := range r.patterns {
		s = p.ReplaceAllLiteralString(s, Mark)
	}
	return s
}

// Message hides parts of the message of a failure.
func (r *Rules) Message(text string) string {
	if r == nil {
		return text
	}
	return r.header(headers.ErrorMessage, text)
}

// Bytes hides parts of a value. hidden reports that it did. With paths it hides all of a value that
// is no JSON, unless there are patterns and no path has its name in the value. Nil and empty values
// stay.
func (r *Rules) Bytes(b []byte) (shown []byte, hidden bool) {
	if r == nil || len(b) == 0 {
		return b, false
	}
	return r.bytes(b, len(r.paths) > 0 && (len(r.patterns) == 0 || r.paths.named(b)))
}

// bytes hides parts of a value. whole hides all of what is no JSON.
func (r *Rules) bytes(b []byte, whole bool) (shown []byte, hidden bool) {
	shown = b
	if isNumber(b) { // is shown as text, so the mark needs no quotes; no path leads into it
		whole = false
	} else if json.Valid(b) {
		var err error
		if shown, hidden, err = r.walk(b, r.paths); err != nil {
			shown, whole = b, true // json.Valid and the decoder disagree
		} else {
			whole = false
		}
	}
	if whole {
		return []byte(fmt.Sprintf("%s %d bytes that are no JSON", Mark, len(b))), true
	}
	// A pattern may fit several members, or what is no JSON.
	for _, p := range r.patterns {
		if p.Match(shown) {
			shown, hidden = p.ReplaceAllLiteral(shown, []byte(Mark)), true
		}
	}
	return shown, hidden
}

// Key hides parts of a key. A key that is no JSON is shown, but for the patterns: one acts by it.
func (r *Rules) Key(key []byte) []byte {
	if r == nil || len(key) == 0 {
		return key
	}
	shown, _ := r.bytes(key, false)
	return shown
}

// Records returns the ledger's records about a letter with texts that follow the rules. The reason
// of a discard in a run is the message of the handler's failure. The records themselves stay as
// they are.
func (r *Rules) Records(records []*dlq.LedgerRecord) []*dlq.LedgerRecord {
	if r == nil {
		return records
	}
	shown := make([]*dlq.LedgerRecord, len(records))
	for i, n := range records {
		copied := *n
		if copied.Entry.Why = r.Text(n.Entry.Why); n.Entry.State == dlq.Discarded && n.Entry.Run != "" {
			copied.Entry.Why = r.Message(n.Entry.Why)
		}
		if n.Err != nil {
			copied.Err = errors.New(r.Text(n.Err.Error()))
		}
		shown[i] = &copied
	}
	return shown
}

// names reports whether a header is hidden by its name.
func (r *Rules) names(header string) bool {
	return slices.ContainsFunc(r.headers, func(name string) bool { return covers(name, header) })
}

// isNumber reports whether JSON is a number, perhaps a key or a header's value.
func isNumber(b []byte) bool {
	return len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') && json.Valid(b)
}

// header hides the text of one of siding's headers.
func (r *Rules) header(name, text string) string {
	if text != "" && r.names(name) {
		return Mark
	}
	return r.Text(text)
}
