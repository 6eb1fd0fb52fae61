package leak

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// A scan that overlooks a leak proves nothing. So each way out is used, in each spelling.
func TestFinder_FindsEachLeak(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, leaks := range map[string]func(f *Finder, mark string){
		"shown":         func(f *Finder, mark string) { f.Show("health", "why: "+mark) },
		"in lower case": func(f *Finder, mark string) { f.Show("health", strings.ToLower(mark)) },
		"base64":        func(f *Finder, mark string) { f.Show("health", base64.StdEncoding.EncodeToString([]byte(mark+"!"))) },
		"base64 further on": func(f *Finder, mark string) {
			f.Show("health", base64.StdEncoding.EncodeToString([]byte("a"+mark+"!")))
		},
		"base64 in a URL": func(f *Finder, mark string) {
			f.Show("health", base64.RawURLEncoding.EncodeToString([]byte("ab"+mark+"!")))
		},
		"hexadecimal":      func(f *Finder, mark string) { f.Show("health", fmt.Sprintf("%X", "a"+mark)) },
		"numbers":          func(f *Finder, mark string) { f.Show("health", fmt.Sprint(struct{ Key []byte }{[]byte("a" + mark)})) },
		"a message":        func(f *Finder, mark string) { f.Logger().Info("got " + mark) }, //nolint:sloglint // that is the leak
		"a debug line":     func(f *Finder, mark string) { f.Logger().Log(ctx, slog.LevelDebug-4, "got it", "key", []byte(mark)) },
		"a logged pointer": func(f *Finder, mark string) { f.Logger().Info("got it", "record", &struct{ Key *string }{&mark}) },
		"a group":          func(f *Finder, mark string) { f.Logger().WithGroup("g").With("key", mark).Info("got it") },
		"a span's name":    func(f *Finder, mark string) { f.TracerProvider().Tracer("t").Start(ctx, mark) },
		"a new span": func(f *Finder, mark string) {
			f.TracerProvider().Tracer("t").Start(ctx, "s", trace.WithAttributes(attribute.String("key", mark)))
		},
		"a span's attribute": func(f *Finder, mark string) {
			_, s := f.TracerProvider().Tracer("t").Start(ctx, "s")
			s.SetAttributes(attribute.StringSlice("keys", []string{"a", mark}))
		},
		"a span's status": func(f *Finder, mark string) {
			ctx, _ := f.TracerProvider().Tracer("t").Start(ctx, "s")
			trace.SpanFromContext(ctx).SetStatus(codes.Error, mark)
		},
		"a span's error": func(f *Finder, mark string) {
			_, s := f.TracerProvider().Tracer("t").Start(ctx, "s")
			s.RecordError(errors.New(mark))
		},
		"a link": func(f *Finder, mark string) {
			f.TracerProvider().Tracer("t").Start(ctx, "s", trace.WithLinks(trace.Link{Attributes: []attribute.KeyValue{attribute.String("key", mark)}}))
		},
		"a counter": func(f *Finder, mark string) {
			c, _ := f.MeterProvider().Meter("m").Int64Counter("c")
			c.Add(ctx, 1, metric.WithAttributes(attribute.String("key", mark)))
		},
		"a histogram": func(f *Finder, mark string) {
			h, _ := f.MeterProvider().Meter("m").Float64Histogram("h")
			h.Record(ctx, 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("key", mark))))
		},
		"a gauge": func(f *Finder, mark string) {
			p := f.MeterProvider()
			g, _ := p.Meter("m").Int64ObservableGauge("g")
			_, _ = p.Meter("m").RegisterCallback(func(_ context.Context, o metric.Observer) error {
				o.ObserveInt64(g, 1, metric.WithAttributes(attribute.String("key", mark)))
				return nil
			}, g)
			_ = p.Collect(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := New()
			leaks(f, f.Mark("value"))
			if len(f.Found()) == 0 {
				t.Error("it is not found")
			}
			f = New()
			leaks(f, New().Mark("value"))
			if found := f.Found(); len(found) > 0 {
				t.Errorf("the mark of another finder is found: %q", found)
			}
		})
	}
}

// A leak in each line of a long log fills no memory.
func TestFinder_KeepsTheFirstFinds(t *testing.T) {
	t.Parallel()
	f := New()
	for range 1000 {
		f.Show("log", f.Mark("key"))
	}
	if found := f.Found(); len(found) != maxFound+1 || found[maxFound] != "and 980 more" || f.Shown("log") != 1000 {
		t.Errorf("%d finds, the last is %q, of %d lines", len(found), found[len(found)-1], f.Shown("log"))
	}
}

// Another process finds the mark, too.
func TestFinder_FindsTheMarkOfAnother(t *testing.T) {
	t.Parallel()
	f := Of(New().Mark(""))
	f.Show("log", "value="+f.Mark(""))
	if f.mark == "" || len(f.Found()) != 1 {
		t.Errorf("of the mark %q, it found %q", f.mark, f.Found())
	}
}
