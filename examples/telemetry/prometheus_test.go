package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// The part of the page that this test writes with -update.
const (
	prometheusBegin = "<!-- prometheus: begin, written by `go test ./examples/telemetry -run Prometheus -update` -->\n"
	prometheusEnd   = "<!-- prometheus: end -->\n"
)

// instrumentLines are a metric of the golden file: name, unit, kind and attributes.
var instrumentLines = regexp.MustCompile(`(?m)^(\S+)  (\S+)  (histogram|counter|sum|gauge).*\n((?:    .*\n)+)`)

// OpenTelemetry's own exporter says which names a Prometheus shows for those of the golden file.
func TestPrometheusNamesOnThePageAreTheExporters(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("siding")
	metrics, attributes := 0, map[string]bool{}
	for _, m := range instrumentLines.FindAllStringSubmatch(string(golden), -1) {
		var keys []attribute.KeyValue
		for _, key := range strings.Fields(m[4]) {
			keys = append(keys, attribute.String(key, ""))
			attributes[key] = true
		}
		metrics++
		measure(t, meter, m[1], m[2], m[3], metric.WithAttributes(keys...))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != metrics || metrics == 0 {
		t.Errorf("the exporter has %d metrics, the golden file %d", len(families), metrics)
	}
	names := map[string]string{} // of attributes, by the exporter's
	for key := range attributes {
		names[strings.ReplaceAll(key, ".", "_")] = key
	}
	shown, labels := map[string]string{}, map[string]bool{}
	for _, f := range families {
		shown[f.GetHelp()] = f.GetName()
		for _, l := range f.Metric[0].Label {
			if !strings.HasPrefix(l.GetName(), "otel_scope_") {
				labels[l.GetName()] = true
			}
		}
	}
	rows := []string{"| attribute | label |", "|---|---|"}
	for label := range labels {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` |", names[label], label))
	}
	slices.Sort(rows[2:])
	comparePart(t, telemetryPage, prometheusBegin, prometheusEnd, strings.Join(rows, "\n")+"\n")
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range unnamed(string(text), shown) {
			t.Errorf("%s names %s without %s beside it", page, name, shown[name])
		}
	}
}

// unnamed returns the metrics that a paragraph, a list's item or a table's row of a page names
// without their name in Prometheus.
func unnamed(page string, shown map[string]string) (all []string) {
	for _, part := range regexp.MustCompile(`\n\n|\n\||\n- `).Split(page, -1) {
		for name, prometheus := range shown {
			if strings.Contains(part, "`"+name+"`") && !strings.Contains(part, prometheus) {
				all = append(all, name)
			}
		}
	}
	return all
}

// measure makes an instrument with one measurement. Its description is its name.
func measure(t *testing.T, meter metric.Meter, name, unit, kind string, attributes metric.MeasurementOption) {
	t.Helper()
	ctx := t.Context()
	var err error
	switch kind {
	case "histogram":
		var i metric.Float64Histogram
		i, err = meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(name))
		i.Record(ctx, 1, attributes)
	case "counter":
		var i metric.Int64Counter
		i, err = meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(name))
		i.Add(ctx, 1, attributes)
	case "sum":
		var i metric.Int64UpDownCounter
		i, err = meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(name))
		i.Add(ctx, 1, attributes)
	case "gauge":
		var i metric.Int64Gauge
		i, err = meter.Int64Gauge(name, metric.WithUnit(unit), metric.WithDescription(name))
		i.Record(ctx, 1, attributes)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// comparePart compares the part of a page between two lines. With -update it writes the part.
func comparePart(t *testing.T, file, begin, end, want string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), begin)
	got, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", file, begin, end)
	}
	if want = "\n" + want + "\n"; got == want {
		return
	}
	if !*update {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		return
	}
	if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
