package dlq

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/cases"
)

func seq(rs []*kgo.Record) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		for _, r := range rs {
			if !yield(newLetter(r, builtin), nil) {
				return
			}
		}
	}
}

// The format is a promise: later versions read the archives of earlier ones.
func TestExport_FormatIsStable(t *testing.T) {
	t.Parallel()
	golden(t, "export-v1.jsonl", string(export(t, letters()[:3]...)))
}

func TestExport_LettersReturnByteForByte(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	want := letters()
	i := 0
	for n, p := range exportLines(bytes.NewReader(export(t, want...)), false) {
		if p.err != nil {
			t.Fatal(p.err)
		}
		if d := cmp.Diff(want[i], p.record, cmp.AllowUnexported(kgo.Record{}, kgo.RecordAttrs{})); d != "" || n != int64(i+1) {
			t.Errorf("line %d: %s", n, d)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d letters, want %d", i, len(want))
	}
}

// U+009B begins a command of a terminal, as ESC [ does, and U+202E turns the text.
func TestExport_GivesATerminalNoCommands(t *testing.T) {
	t.Parallel()
	keys := []string{"x\u009b2J", "\u202ex", "\x1b[2J", "\x7f", "größe"}
	r := &kgo.Record{Topic: "orders.dlq", Timestamp: letters()[0].Timestamp}
	for _, key := range keys {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key})
	}
	text := export(t, r)
	if bytes.ContainsFunc(bytes.TrimSuffix(text, []byte("\n")), func(r rune) bool { return !unicode.IsPrint(r) }) || !bytes.Contains(text, []byte(`"größe"`)) {
		t.Errorf("%q", text)
	}
	for _, p := range exportLines(bytes.NewReader(text), false) {
		if d := cmp.Diff(r.Headers, p.record.Headers); p.err != nil || d != "" {
			t.Error(p.err, d)
		}
	}
}

func TestExport_ReturnsErrorsOfLettersAndWriter(t *testing.T) {
	t.Parallel()
	stall, full := errors.New("partition 1 delivered nothing"), errors.New("no space left on device")
	var b bytes.Buffer
	n, err := Export(&b, func(yield func(*Letter, error) bool) {
		_ = yield(nil, stall) && yield(newLetter(letters()[0], builtin), nil)
	})
	if n != 1 || !errors.Is(err, stall) || bytes.Count(b.Bytes(), []byte("\n")) != 1 {
		t.Errorf("%d letters, %v", n, err)
	}
	r, w := io.Pipe()
	_ = r.CloseWithError(full) // never fails
	if _, err := Export(w, seq(letters())); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

// A file was edited, cut short, or is no export at all. Its letters are read up to the first line
// that is none; the error has that line's number, and nothing behind it is read.
func FuzzExport_FileIsReadToItsFirstFault(f *testing.F) {
	var whole []byte
	for _, r := range letters()[:3] {
		whole = append(whole, export(f, r)...)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append([]byte("\xef\xbb\xbf"), whole...))
	f.Add(bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		read, last := int64(0), int64(0)
		var fault error
		for n, p := range exportLines(bytes.NewReader(file), false) {
			if last++; n != last {
				t.Fatalf("line %d comes behind line %d", n, last-1)
			}
			if fault != nil {
				t.Fatalf("line %d is read behind %v", n, fault)
			}
			if fault = p.err; fault == nil {
				read++
			} else if !strings.HasPrefix(fault.Error(), fmt.Sprintf("line %d: ", n)) {
				t.Errorf("line %d: the error is %v", n, fault)
			}
		}
		if ends := int64(bytes.Count(file, []byte("\n"))); fault == nil && (read != ends || len(file) > 0 && file[len(file)-1] != '\n') {
			t.Errorf("%d letters of %d lines are read without an error", read, ends)
		}
	})
}

func FuzzExport_LineRoundTrips(f *testing.F) {
	for _, r := range letters()[:3] {
		f.Add(export(f, r))
	}
	f.Add([]byte(`{"v":1,"partition":0,"timestamp":9223372036854775807,"key":null,"value":"","headers":[{"keyBytes":"","value":null},{"key":null,"keyBytes":"/w==","value":""}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		p := parseExported(line)
		if p.err != nil {
			return
		}
		own := export(t, p.record)
		again := parseExported(bytes.TrimSuffix(own, []byte("\n")))
		if again.err != nil {
			t.Fatalf("%s is read, its own form %s is not: %v", line, own, again.err)
		}
		if d := cmp.Diff(p.record, again.record, cmp.AllowUnexported(kgo.Record{}, kgo.RecordAttrs{})); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	})
}
