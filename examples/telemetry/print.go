package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// spanPrinter is an exporter that prints one line for each span, and its links by the numbers of
// earlier spans.
type spanPrinter struct {
	out io.Writer

	mu      sync.Mutex
	numbers map[trace.SpanID]int
	waiting map[int]chan struct{}
}

// ExportSpans implements sdktrace.SpanExporter.
func (p *spanPrinter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range spans {
		n := len(p.numbers) + 1
		if p.numbers == nil {
			p.numbers = map[trace.SpanID]int{}
		}
		p.numbers[s.SpanContext().SpanID()] = n
		fmt.Fprintf(p.out, "span %d  %v %s\n", n, s.SpanKind(), s.Name())
		if a := attributes(s.Attributes()); a != "" {
			fmt.Fprintln(p.out, "        ", a)
		}
		if status := s.Status(); status.Description != "" {
			fmt.Fprintf(p.out, "         %v: %s\n", status.Code, status.Description)
		}
		for _, link := range s.Links() {
			fmt.Fprintf(p.out, "         follows span %d\n", p.numbers[link.SpanContext.SpanID()])
		}
		if c := p.waiting[n]; c != nil {
			close(c)
		}
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (*spanPrinter) Shutdown(context.Context) error { return nil }

// seen returns a channel that is closed when n spans were printed.
func (p *spanPrinter) seen(n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := make(chan struct{})
	if len(p.numbers) >= n {
		close(c)
		return c
	}
	if p.waiting == nil {
		p.waiting = map[int]chan struct{}{}
	}
	p.waiting[n] = c
	return c
}

// printMetrics collects what a reader would export now, and prints one line for each series.
func printMetrics(ctx context.Context, out io.Writer, reader sdkmetric.Reader) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		return fmt.Errorf("collecting metrics: %w", err)
	}
	for _, scope := range all.ScopeMetrics {
		slices.SortFunc(scope.Metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
		for _, m := range scope.Metrics {
			fmt.Fprintf(out, "%s [%s]\n", m.Name, m.Unit)
			var lines []string
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				lines = points(data.DataPoints)
			case metricdata.Gauge[int64]:
				lines = points(data.DataPoints)
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%6d times  %s", p.Count, attributes(p.Attributes.ToSlice())))
				}
			}
			slices.Sort(lines)
			for _, line := range lines {
				fmt.Fprintln(out, line)
			}
		}
	}
	return nil
}

func points(all []metricdata.DataPoint[int64]) (lines []string) {
	for _, p := range all {
		lines = append(lines, fmt.Sprintf("%12d  %s", p.Value, attributes(p.Attributes.ToSlice())))
	}
	return lines
}

func attributes(all []attribute.KeyValue) string {
	var words []string
	for _, a := range all {
		words = append(words, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	return strings.Join(words, " ")
}
