package logline

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
)

// Handler is a [slog.Handler] that hands lines on with these changes:
//
//   - A duration is text, as [Words] returns it. slog's JSON has nanoseconds.
//   - A text has no line break and no other control character, and is at most [MaxText] bytes long:
//     see [Text]. An error with such a text is replaced by one that unwraps to it. So does any
//     other value become its text.
//
// A panic of the inner handler loses its line and nothing else. The handler writes the first one to
// standard error, since the log cannot be trusted with it.
type Handler struct {
	inner  slog.Handler
	panics *panics // shared by all handlers that come of one
}

// panics writes the first panic.
type panics struct {
	once sync.Once
	to   io.Writer
}

// New wraps a handler.
func New(inner slog.Handler) Handler {
	if h, ok := inner.(Handler); ok {
		return h
	}
	return Handler{inner, &panics{to: os.Stderr}}
}

// guard is deferred by the methods that call the inner handler.
func (h Handler) guard() {
	if v := recover(); v != nil {
		h.panics.once.Do(func() {
			// Of the value only the type: it may quote what Config.ErrorText is there to hide.
			_, _ = fmt.Fprintf(h.panics.to, "siding: Config.Logger panicked with a %T; lines of the log are lost\n%s", v, debug.Stack())
		})
	}
}

// Enabled implements slog.Handler.
func (h Handler) Enabled(ctx context.Context, level slog.Level) bool {
	defer h.guard()
	return h.inner.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	defer h.guard()
	clean := slog.NewRecord(r.Time, r.Level, Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(attr(a))
		return true
	})
	return h.inner.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler. After a panic the lines lack the attributes.
func (h Handler) WithAttrs(all []slog.Attr) (with slog.Handler) {
	with = h
	defer h.guard()
	return Handler{h.inner.WithAttrs(attrs(all)), h.panics}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) (with slog.Handler) {
	with = h
	defer h.guard()
	return Handler{h.inner.WithGroup(name), h.panics}
}

func attrs(all []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(all))
	for i, a := range all {
		clean[i] = attr(a)
	}
	return clean
}

func attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindDuration:
		v = slog.StringValue(Words(v.Duration()))
	case slog.KindString:
		v = slog.StringValue(Text(v.String()))
	case slog.KindGroup:
		v = slog.GroupValue(attrs(v.Group())...)
	case slog.KindAny:
		v = value(v)
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// value keeps a value whose text needs no change: a handler may know its type.
func value(v slog.Value) slog.Value {
	was := fmt.Sprintf("%+v", v.Any()) // never panics, unlike a call of Error on a nil pointer
	err, isError := v.Any().(error)
	if isError {
		was = fmt.Sprint(err)
	}
	is := Text(was)
	switch {
	case is == was:
		return v
	case isError:
		return slog.AnyValue(&lineError{is, err})
	}
	return slog.StringValue(is)
}

// lineError is an error with a text of one line.
type lineError struct {
	text string
	err  error
}

func (e *lineError) Error() string { return e.text }
func (e *lineError) Unwrap() error { return e.err }
