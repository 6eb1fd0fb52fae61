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

// signals are what a feed's spans and measurements have in common, made once.
type signals struct {
	name    string // of the spans
	span    []trace.SpanStartOption
	root    []trace.SpanStartOption // the same, where the context has another one's span
	common  []attribute.KeyValue
	handled []metric.RecordOption
	late    []metric.RecordOption
}

// with are the attributes of the duration of a run that ended so.
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
		// There from the start, since samplers may go by them.
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

// tierName is a tier as an attribute: its delay, nothing for the source.
func tierName(delay time.Duration) string {
	if delay == 0 {
		return ""
	}
	return retrytopics.FormatDelay(delay)
}
