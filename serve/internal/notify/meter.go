package notify

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Meter counts the messages that were given up.
type Meter struct{ givenUp metric.Int64Counter }

// NewMeter makes the counter.
func NewMeter(m metric.Meter) (*Meter, error) {
	givenUp, err := m.Int64Counter("siding.notifications.given_up", metric.WithUnit("{notification}"),
		metric.WithDescription("Messages to receivers that were given up: refused for good, or not accepted for a quarter of an hour."))
	return &Meter{givenUp}, err
}

// GaveUp adds n messages about a topic. A rate needs the value before the first one: 0.
func (m *Meter) GaveUp(topic, receiver string, n int64) {
	m.givenUp.Add(context.Background(), n, metric.WithAttributes(semconv.MessagingDestinationName(topic), attribute.String("siding.receiver.name", receiver)))
}
