package main

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

func TestSumsAddUpOverAttributes(t *testing.T) {
	t.Parallel()
	o := newTelemetry()
	c, err := o.meters.Meter("bench").Int64Counter("bytes")
	if err != nil {
		t.Fatal(err)
	}
	for tier, n := range map[string]int64{"1m": 3, "2m": 4} {
		c.Add(t.Context(), n, metric.WithAttributes(attribute.String("tier", tier)))
	}
	sums, err := o.sums(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sums["bytes"] != 7 || sums["absent"] != 0 {
		t.Errorf("sums %v, want 7 bytes and nothing else", sums)
	}
}
