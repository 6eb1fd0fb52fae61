package consumer

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/retrytopics"
)

// signals holds the parts that all spans and measurements of a feed share, made once.
type signals struct {
	name    string // of the spans
	span    []trace.SpanStartOption
	root    []trace.SpanStartOption // the same, if the context has a foreign span
	common  []attribute.KeyValue
	handled []metric.RecordOption
	late    []metric.RecordOption
}

// with returns the attributes of a run's duration: the common ones and more.
func (s *signals) with(more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(append(s.common[:len(s.common):len(s.common)], more...)...))}
}

// newSignals makes the signals of a feed's origin.
func newSignals(from *origin, group string) signals {
	common := []attribute.KeyValue{
		semconv.MessagingSystemKafka,
		semconv.MessagingOperationName("process"),
		semconv.MessagingDestinationName(from.source),
		semconv.MessagingConsumerGroupName(group),
		keyTier.String(tierName(from.delay)),
	}
	span := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		// Set at the start, because samplers may use them.
		trace.WithAttributes(append(common[:len(common):len(common)], semconv.MessagingOperationTypeProcess,
			semconv.MessagingDestinationPartitionID(strconv.Itoa(int(from.partition))))...),
	}
	s := signals{
		name:   "process " + from.source,
		span:   span,
		root:   append(span[:len(span):len(span)], trace.WithNewRoot()),
		common: common,
		late: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(semconv.MessagingDestinationName(from.source),
			semconv.MessagingConsumerGroupName(group), keyTier.String(tierName(from.delay))))},
	}
	s.handled = s.with(keyOutcome.String(outcomeHandled))
	return s
}

// tierName returns a tier's attribute: its delay, or the empty string for the source.
func tierName(delay time.Duration) string {
	if delay == 0 {
		return ""
	}
	return retrytopics.FormatDelay(delay)
}
