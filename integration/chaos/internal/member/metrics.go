package member

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/internal/leak"
)

// writeMetrics writes what the metrics say to a file, and shows them to the finder.
func writeMetrics(reader *sdkmetric.ManualReader, finder *leak.Finder, name string) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	finder.Show("metric", string(text))
	m := trace.Measured{}
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			switch points := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range points.DataPoints {
					to, _ := p.Attributes.Value("siding.to")
					m[strings.TrimSuffix(metric.Name+" "+to.AsString(), " ")] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range points.DataPoints {
					outcome, _ := p.Attributes.Value("siding.outcome")
					m[strings.TrimSuffix(metric.Name+" "+outcome.AsString(), " ")] += int64(p.Count)
				}
			}
		}
	}
	if text, err = json.Marshal(m); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
