package apply

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// retentionMeters count what retention did on this server.
type retentionMeters struct {
	prunedCount, archivedCount, failures metric.Int64Counter
}

func newRetentionMeters(meter metric.Meter) (*retentionMeters, error) {
	var m retentionMeters
	var errs [3]error
	m.prunedCount, errs[0] = meter.Int64Counter("siding.dead_letters.pruned", metric.WithUnit("{record}"),
		metric.WithDescription("Dead letters that retention deleted."))
	m.archivedCount, errs[1] = meter.Int64Counter("siding.dead_letters.archived", metric.WithUnit("{record}"),
		metric.WithDescription("Dead letters that were archived before they were deleted, by the server or by Kafka."))
	m.failures, errs[2] = meter.Int64Counter("siding.retention.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("Failures to archive or delete dead letters; the server tries again."))
	return &m, errors.Join(errs[:]...)
}

func ofTopic(topic string) metric.MeasurementOption {
	return metric.WithAttributes(semconv.MessagingDestinationName(topic))
}

// seen shows the counters of a topic from the beginning: a rate needs the value before the first
// event.
func (m *retentionMeters) seen(ctx context.Context, topic string) {
	m.pruned(ctx, topic, 0)
	m.archived(ctx, topic, 0)
	m.failures.Add(ctx, 0, ofTopic(topic))
}

func (m *retentionMeters) pruned(ctx context.Context, topic string, n int64) {
	m.prunedCount.Add(ctx, n, ofTopic(topic))
}

func (m *retentionMeters) archived(ctx context.Context, topic string, n int64) {
	m.archivedCount.Add(ctx, n, ofTopic(topic))
}

func (m *retentionMeters) failed(ctx context.Context, topic string) {
	m.failures.Add(ctx, 1, ofTopic(topic))
}
