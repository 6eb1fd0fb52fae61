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

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
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
	virtually(t, func(t *testing.T, k *consumertest.Kafka) {
		o := newTelemetry(t)
		everything(t, k, o)
		metrics := o.metrics()
		slices.SortFunc(metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
		var got strings.Builder
		for _, m := range metrics {
			fmt.Fprintln(&got, describe(t, m))
		}
		fmt.Fprintln(&got, describeSpans(o.spans.Ended()))
		if *update {
			if err := os.WriteFile(goldenFile, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(goldenFile)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("telemetry is\n%swant\n%s", got.String(), want)
		}
		page, err := os.ReadFile(telemetryPage)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := k.Cluster.CreateTopic("orders.dlq", 2, map[string]string{"max.message.bytes": "5000"}); err != nil {
		t.Fatal(err)
	}
	c := k.Run(cfg)
	k.Handled(k.Produce(order("fine"))[0], 1)
	stop(t, c)
	k.Produce(order("deleted before it is read"))
	kept := k.Produce(&kgo.Record{Topic: "orders", Partition: 1})[0] // a tombstone
	if err := k.Cluster.DeleteRecords("orders", 1, kept.Offset); err != nil {
		t.Fatal(err)
	}
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

// describe returns a metric as text.
func describe(t *testing.T, m metricdata.Metrics) string {
	t.Helper()
	keys := map[string]bool{}
	add := func(set attribute.Set) {
		for _, a := range set.ToSlice() {
			keys[string(a.Key)] = true
		}
	}
	kind := ""
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind = "sum"
		if data.IsMonotonic {
			kind = "counter"
		}
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[int64]:
		kind = "gauge"
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			kind = "histogram, up to " + strings.Trim(fmt.Sprint(p.Bounds), "[]")
			add(p.Attributes)
		}
	default:
		t.Fatalf("%s is a %T", m.Name, data)
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
