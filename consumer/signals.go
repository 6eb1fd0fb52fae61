package consumer

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
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
