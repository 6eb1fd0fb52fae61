package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

var update = flag.Bool("update", false, "write the golden file instead of comparing with it")

// goldenFile lists the names that dashboards and alerts use. A line that changes or disappears
// breaks them: the CHANGELOG has to name its replacement. New lines may be added.
var goldenFile = filepath.Join("testdata", "telemetry.golden")

// telemetryPage explains each name.
const telemetryPage = "../../docs/telemetry.md"

// A metric and its kind, in the golden file and on the page.
var (
	metricLine = regexp.MustCompile(`(?m)^([a-z_.]+)  \S+  ([a-z]+)`)
	metricRow  = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (histogram|counter|sum|gauge), ")
)

func TestNamesUnitsKindsAndAttributesAreThoseOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, k *consumertest.Kafka, o *telemetry) {
		everything(t, k, o)
		metrics := o.metrics()
		slices.SortFunc(metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
		var got strings.Builder
		for _, m := range metrics {
			fmt.Fprintln(&got, o.describe(m))
		}
		fmt.Fprintln(&got, describeSpans(o.spans.Ended()))
		if *update {
			must(t, os.WriteFile(goldenFile, []byte(got.String()), 0o644))
		}
		want, err := os.ReadFile(goldenFile)
		must(t, err)
		if got.String() != string(want) {
			t.Errorf("telemetry is\n%swant\n%s", got.String(), want)
		}
		page, err := os.ReadFile(telemetryPage)
		must(t, err)
		for word := range strings.FieldsSeq(string(want)) {
			if strings.Contains(word, ".") && word[0] > '9' && !strings.Contains(string(page), "`"+word+"`") {
				t.Errorf("%s does not explain %s", telemetryPage, word)
			}
		}
		kinds := map[string]string{}
		for _, m := range metricLine.FindAllStringSubmatch(string(want), -1) {
			kinds[m[1]] = m[2]
		}
		said := map[string]string{}
		for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
			said[m[1]] = m[2]
		}
		if !maps.Equal(kinds, said) {
			t.Errorf("%s has metrics %v, want %v", telemetryPage, said, kinds)
		}
	})
}

// everything causes an event of each kind, so that each metric and each attribute appears.
func everything(t *testing.T, k *consumertest.Kafka, o *telemetry) {
	t.Helper()
	cfg := o.config(func(_ context.Context, r *kgo.Record) error {
		switch string(r.Value[:min(len(r.Value), 6)]) {
		case "busy":
			return classify.Retryable(errBusy)
		case "broken":
			return errors.New("no such SKU")
		}
		return nil
	})
	cfg.Policy = minute
	cfg.Policy.MaxAttempts = 3
	must(t, k.Cluster.CreateTopic("orders.dlq", 2, map[string]string{"max.message.bytes": "5000"}))
	c := k.Run(cfg)
	k.Handled(k.Produce(order("fine"))[0], 1)
	stop(t, c)
	k.Produce(order("deleted before it is read"))
	kept := k.Produce(&kgo.Record{Topic: "orders", Partition: 1})[0] // a tombstone
	must(t, k.Cluster.DeleteRecords("orders", 1, kept.Offset))
	k.Run(cfg)
	k.Handled(kept, 1)
	large := make([]byte, 10_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	k.DeadLettered(k.Produce(order("broken" + string(large)))[0], headers.ReasonTerminal)
	k.Parked(k.Produce(order("busy"))[0], time.Minute, "")
	time.Sleep(70 * time.Second) // it ran a second time, and is parked again
	for range 100 {
		k.Produce(order("busy")) // the topic is strained
	}
	time.Sleep(time.Second)
	synctest.Wait()
}

// describe returns a metric as text. All of its series are the group's.
func (o *telemetry) describe(m metricdata.Metrics) string {
	o.Helper()
	keys := map[string]bool{}
	for _, p := range o.points(m) {
		if group, _ := p.set.Value("messaging.consumer.group.name"); group.AsString() != "billing" {
			o.Errorf("%s is of group %q, want billing", m.Name, group.AsString())
		}
		for _, a := range p.set.ToSlice() {
			keys[string(a.Key)] = true
		}
	}
	kind := "gauge"
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind = "sum"
		if data.IsMonotonic {
			kind = "counter"
		}
	case metricdata.Histogram[float64]:
		kind = "histogram, up to " + strings.Trim(fmt.Sprint(data.DataPoints[0].Bounds), "[]")
	}
	return fmt.Sprintf("%s  %s  %s\n    %s", m.Name, m.Unit, kind, strings.Join(slices.Sorted(maps.Keys(keys)), "\n    "))
}

// describeSpans lists the attributes that all spans have, and those that some have.
func describeSpans(spans []sdktrace.ReadOnlySpan) string {
	keys, kinds := map[string]int{}, map[string]bool{}
	for _, s := range spans {
		kinds[s.SpanKind().String()+" span "+s.Name()] = true
		for _, a := range s.Attributes() {
			keys[string(a.Key)]++
		}
	}
	text := strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		text += "\n    " + key
		if keys[key] < len(spans) {
			text += "  on some"
		}
	}
	return text
}

// instrumentLines are a metric of the golden file: name, unit, kind and attributes.
var instrumentLines = regexp.MustCompile(`(?m)^(\S+)  (\S+)  (histogram|counter|sum|gauge).*\n((?:    .*\n)+)`)

// OpenTelemetry's own exporter says which names a Prometheus shows for those of the golden file.
func TestPrometheusNamesOnThePageAreTheExporters(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile(goldenFile)
	must(t, err)
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutTargetInfo())
	must(t, err)
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
	must(t, err)
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
	for label := range labels {
		if names[label] == "" {
			t.Errorf("the label %s is no attribute with _ in place of each dot", label)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		must(t, err)
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
	must(t, err)
}
