package servecmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// exportVariables are those of OpenTelemetry's SDKs that name the target of metrics over OTLP.
var exportVariables = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"}

// exportTime is how long the last metrics may take when the server ends.
const exportTime = 5 * time.Second

// newExporter returns a reader that sends metrics to the target that the environment names; nil
// without one. Its end sends the last ones.
func newExporter(ctx context.Context, getenv func(string) string) (_ sdkmetric.Reader, end func(), err error) {
	if !slices.ContainsFunc(exportVariables, func(name string) bool { return getenv(name) != "" }) {
		return nil, func() {}, nil
	}
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("sending metrics over OTLP, as the variables OTEL_EXPORTER_OTLP_… ask for: %w", err)
	}
	reader := sdkmetric.NewPeriodicReader(exporter)
	return reader, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportTime)
		defer cancel()
		_ = reader.Shutdown(ctx) // the SDK has logged what failed
	}, nil
}
