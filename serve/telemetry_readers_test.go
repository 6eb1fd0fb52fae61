package serve_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sidingkafka/siding/serve"
)

// A reader of OpenTelemetry gets what /metrics has.
func TestServer_MetricsGoToReadersOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	reader := sdkmetric.NewManualReader()
	s, _ := c.run(serve.Config{MetricReaders: []sdkmetric.Reader{reader}})
	c.fail("orders", "decode", 3)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 3`)
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	open := int64(0)
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			names = append(names, strings.ReplaceAll(m.Name, ".", "_"))
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "siding.dead_letters.open" {
				for _, p := range sum.DataPoints {
					open += p.Value
				}
			}
		}
	}
	if open != 3 {
		t.Errorf("%d letters are open", open)
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (siding_\S+?)(_total|_seconds|_ratio)? `).FindAllStringSubmatch(get(t, s, "/metrics"), -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("no reader gets %s: %v", m[1], names)
		}
	}
}
