package logline

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// nilError panics when it is asked for its text.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestHandler_WritesReadableLines(t *testing.T) {
	t.Parallel()
	var text, json bytes.Buffer
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	options := &slog.HandlerOptions{ReplaceAttr: drop}
	for _, h := range []slog.Handler{slog.NewTextHandler(&text, options), slog.NewJSONHandler(&json, options)} {
		log := slog.New(New(New(h))).With("wait", 90*time.Second).WithGroup("g")
		log.Info("two\nlines", "took", 1500*time.Millisecond, slog.Group("in", "d", time.Hour, "s", "a\r\n\tb"),
			"error", errors.Join(errors.New("one"), errors.New("two")), "plain", fs.ErrNotExist, "list", []string{"a", "b"},
			"nil", (*nilError)(nil), "n", 7)
	}
	if got, want := text.String(), `level=INFO msg="two | lines" wait=1m30s g.took=1.5s g.in.d=1h g.in.s="a | b" g.error="one | two" `+
		`g.plain="file does not exist" g.list="[a b]" g.nil=<nil> g.n=7`+"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := json.String(), `{"level":"INFO","msg":"two | lines","wait":"1m30s","g":{"took":"1.5s","in":{"d":"1h","s":"a | b"},"error":"one | two",`+
		`"plain":"file does not exist","list":["a","b"],"nil":"<nil>","n":7}}`+"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A handler that forwards errors to a tracker looks for their types.
func TestHandler_KeepsErrors(t *testing.T) {
	t.Parallel()
	var got error
	h := New(seen(func(a slog.Attr) { got, _ = a.Value.Any().(error) }))
	slog.New(h).Info("m", "error", fs.ErrNotExist)
	if got != fs.ErrNotExist { //nolint:errorlint // not one that wraps it
		t.Errorf("an error of one line became %#v", got)
	}
	slog.New(h).Info("m", "error", errors.Join(fs.ErrNotExist, fs.ErrExist))
	if !errors.Is(got, fs.ErrExist) || got.Error() != "file does not exist | file already exists" {
		t.Errorf("an error of two lines became %#v", got)
	}
}

// seen is a handler that passes on attributes.
type seen func(slog.Attr)

func (seen) Enabled(context.Context, slog.Level) bool { return true }
func (h seen) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h seen) WithGroup(string) slog.Handler          { return h }
func (h seen) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		h(a)
		return true
	})
	return nil
}

// A handler that panicked on the line about a parked record made it a dead letter; one that always
// panicked ended the process.
func TestHandler_PanicLosesItsLineOnly(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	h := New(broken{})
	h.panics.to = &written
	log := slog.New(h).With("a", 1).WithGroup("g")
	for range 3 {
		log.Info("m")
		if err := log.Handler().Handle(t.Context(), slog.Record{}); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(written.String(), "Config.Logger panicked"); n != 1 || strings.Contains(written.String(), "4111") {
		t.Errorf("the panic is written %d times, want once, without its value:\n%s", n, written.String())
	}
}

// broken is a handler that panics with a text about a record.
type broken struct{}

func (broken) Enabled(context.Context, slog.Level) bool  { panic("card 4111") }
func (broken) WithAttrs([]slog.Attr) slog.Handler        { panic("card 4111") }
func (broken) WithGroup(string) slog.Handler             { panic("card 4111") }
func (broken) Handle(context.Context, slog.Record) error { panic("card 4111") }
