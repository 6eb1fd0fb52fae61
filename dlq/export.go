package dlq

// Writes letters as JSON lines.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

const exportVersion = 1

// exported is a line of an export, version 1. Bytes are in base64 (standard, padded). A nil key or
// value is null, and an empty one is "". Topic, Partition and Offset are where the letter was.
type exported struct {
	V         int              `json:"v"`
	Topic     string           `json:"topic"`
	Partition *int32           `json:"partition"`
	Offset    int64            `json:"offset"`
	Timestamp *int64           `json:"timestamp"` // Unix milliseconds
	Key       blob             `json:"key"`
	Value     blob             `json:"value"`
	Headers   []exportedHeader `json:"headers"`
	// Redacted marks a line of which parts are hidden.
	Redacted bool `json:"redacted,omitempty"`
}

// exportedHeader has its key as text, or in base64 if that is not UTF-8 or a terminal may act on
// it.
type exportedHeader struct {
	Key      *string `json:"key,omitempty"`
	KeyBytes blob    `json:"keyBytes,omitzero"`
	Value    blob    `json:"value"`
}

// blob is bytes, null, or a missing field.
type blob struct {
	bytes []byte
	given bool
}

func (b blob) MarshalJSON() ([]byte, error) {
	return json.Marshal(b.bytes)
}

func (b *blob) UnmarshalJSON(text []byte) error {
	*b = blob{given: true}
	return json.Unmarshal(text, &b.bytes)
}

func (b blob) IsZero() bool { return !b.given }

// Export writes letters as JSON lines, one a letter, byte for byte: [Import] restores the same
// records.
//
//	{"v":1,"topic":"orders.dlq","partition":0,"offset":17,"timestamp":1763000000000,
//	 "key":"b3JkZXItNw==","value":null,"headers":[{"key":"dlq-reason","value":"dGVybWluYWw="}]}
//
// All of it is on one line. Bytes are in base64, and null differs from empty. Headers keep their
// order, with duplicates. The timestamp is in Unix milliseconds. A header's key that is not UTF-8,
// or that has characters above ASCII on which a terminal acts, is in base64, as keyBytes.
//
// A letter of which parts are hidden ([Letter.Redacted]) also has "redacted":true, and Import
// refuses its line.
//
// letters comes from [Read] or [Ledger.Letters]. An error of letters does not end the export, and
// is returned at its end. An error of w ends it. n is how many letters were taken; after an error
// of w, fewer may have been written.
func Export(w io.Writer, letters iter.Seq2[*Letter, error]) (n int64, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	var errs []error
	for l, err := range letters {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := lines.Encode(exportLine(l)); err != nil {
			return n, fmt.Errorf("dlq: export letter %s/%d/%d: %w", l.Record.Topic, l.Record.Partition, l.Record.Offset, err)
		}
		n++
	}
	if err := out.Flush(); err != nil {
		return n, fmt.Errorf("dlq: export: %w", err)
	}
	return n, errors.Join(errs...)
}

func exportLine(l *Letter) *exported {
	r := l.Record
	at := r.Timestamp.UnixMilli()
	line := &exported{
		V: exportVersion, Topic: r.Topic, Partition: &r.Partition, Offset: r.Offset, Timestamp: &at, Key: blob{bytes: r.Key}, Value: blob{bytes: r.Value},
		Headers: make([]exportedHeader, len(r.Headers)), Redacted: l.Redacted,
	}
	for i, h := range r.Headers {
		line.Headers[i].Value = blob{bytes: h.Value}
		if utf8.ValidString(h.Key) && !strings.ContainsFunc(h.Key, isCommand) {
			line.Headers[i].Key = &h.Key
		} else {
			line.Headers[i].KeyBytes = blob{[]byte(h.Key), true}
		}
	}
	return line
}

// isCommand reports whether a terminal may act on a character that encoding/json leaves unescaped.
func isCommand(r rune) bool { return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }

// parseExported reads a line, without its end. All fields of a record must be there: a missing
// value is not a null.
func parseExported(line []byte) (p parsed) {
	var e exported
	err := json.Unmarshal(line, &e)
	switch {
	case e.V > exportVersion:
		p.err = fmt.Errorf("it has version %d, and this siding reads version %d: %w", e.V, exportVersion, ErrNewerVersion)
	case err != nil:
		p.err = fmt.Errorf("not a letter: %w", err)
	case e.V < 1:
		p.err = errors.New("not a letter: the version is missing")
	case e.Partition == nil || *e.Partition < 0:
		p.err = errors.New("not a letter: the partition is missing")
	case e.Timestamp == nil || !e.Key.given || !e.Value.given || e.Headers == nil:
		p.err = errors.New("not a letter: one of timestamp, key, value and headers is missing")
	}
	if p.redacted = e.Redacted; p.err != nil {
		return p
	}
	r := &kgo.Record{Topic: e.Topic, Partition: *e.Partition, Offset: e.Offset, Timestamp: time.UnixMilli(*e.Timestamp), Key: e.Key.bytes, Value: e.Value.bytes}
	for i, h := range e.Headers {
		if (h.Key == nil) == (h.KeyBytes.bytes == nil) || !h.Value.given {
			p.err = fmt.Errorf("not a letter: header %d has no key or no value", i)
			return p
		}
		key := string(h.KeyBytes.bytes)
		if h.Key != nil {
			key = *h.Key
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: h.Value.bytes})
	}
	p.record = r
	return p
}

// maxLine is the longest line of an export that can be read, in bytes. A record could have 2 GiB,
// but no real broker accepts that.
const maxLine = 512 << 20

// exportLines yields the letters of an export, each with the number of its line, from 1 on. It ends
// after an error. A line of which parts are hidden is an error, unless redacted allows it.
func exportLines(r io.Reader, redacted bool) iter.Seq2[int64, parsed] {
	return func(yield func(int64, parsed) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		lines.Split(wholeLine)
		for n := int64(1); ; n++ {
			var p parsed
			if lines.Scan() {
				if p = parseExported(lines.Bytes()); p.redacted && !redacted {
					p.err = errors.New("not a letter any more: parts of it were redacted when it was exported, so export it again without --redact")
				}
			} else if p.err = lines.Err(); p.err == nil {
				return
			}
			if p.err != nil {
				p.err = fmt.Errorf("line %d: %w", n, p.err)
			}
			if !yield(n, p) || p.err != nil {
				return
			}
		}
	}
}

// parsed is a line of an export.
type parsed struct {
	record   *kgo.Record
	redacted bool
	err      error
}

// ReadExport yields the letters of an export, line by line, also those of which parts are hidden.
// It ends with the error of the first broken line, which names the line. A letter's position is
// where it was when it was exported.
func ReadExport(r io.Reader) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		for _, p := range exportLines(r, true) {
			if p.err != nil {
				yield(nil, fmt.Errorf("dlq: read an export: %w", p.err))
				return
			}
			l := newLetter(p.record, builtin)
			if l.Redacted = p.redacted; !yield(l, nil) {
				return
			}
		}
	}
}

// wholeLine splits lines as a [bufio.SplitFunc], and refuses a last one that does not end.
func wholeLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, errors.New("the file is cut short: the line does not end")
	}
	return 0, nil, nil
}
