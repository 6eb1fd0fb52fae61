package consumer

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/headers"
)

// Instrumentation follows OpenTelemetry's semantic conventions for messaging and Kafka, version
// 1.43 (status: development). The next version renames some keys; all of them are in this file.
const scope = modulePath + "/consumer"

// What became of a delivery.
const (
	outcomeHandled      = "handled"
	outcomeRetried      = "retried"
	outcomeDeadLettered = "dead_lettered"
	outcomeDiscarded    = "discarded"
	outcomeStopped      = "stopped"
	outcomeDrained      = "drained" // no attempt: of spans only
)

const (
	keyTier    = attribute.Key("siding.tier")
	keyOutcome = attribute.Key("siding.outcome")
	keyTo      = attribute.Key("siding.to")
	keyReason  = attribute.Key("siding.reason")
	keyState   = attribute.Key("siding.lane.state")
	keyMember  = attribute.Key("siding.member.state")
)

// maxClasses bounds the class names that a consumer uses as attributes of metrics: a class that
// holds a record's id would otherwise make a time series a record.
const maxClasses = 100

// telemetry is where the consumer's spans and metrics go; nil before Run.
type telemetry struct {
	tracer   trace.Tracer
	spanned  bool      // the context that Run was called with has a span
	base     time.Time // that durations are reckoned from
	duration metric.Float64Histogram
	lateness metric.Float64Histogram
	routed   metric.Int64Counter
	expired  metric.Int64Counter
	omitted  metric.Int64Counter
	observed metric.Registration
	// coarse reading before which no tracer is asked for a span: there was no SDK
	askTracerAt atomic.Int64

	mu       sync.Mutex
	classes  map[string]bool
	failures map[failure][]metric.RecordOption
	routes   map[routing][]metric.AddOption
}

// failure and routing are what the measurements of failed records tell apart, each with its
// attributes made once. There are not many, since class names are bounded and the others are few.
type (
	failure struct {
		topic          string
		delay          time.Duration // of the tier
		outcome, class string
	}
	routing struct {
		topic, to, class string
		reason           headers.Reason
	}
)

// class bounds the names that are used as attributes.
func (t *telemetry) class(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.classes[name] {
		return name
	}
	if len(t.classes) >= maxClasses {
		return "other"
	}
	t.classes[name] = true
	return name
}

// failed are the attributes of a failed run's duration.
func (t *telemetry) failed(from *origin, outcome, class string) []metric.RecordOption {
	is := failure{from.source, from.delay, outcome, t.class(class)}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.failures[is]
	if !ok {
		with = from.sig.with(keyOutcome.String(outcome), semconv.ErrorTypeKey.String(is.class))
		t.failures[is] = with
	}
	return with
}

// route are the attributes of a failed record, by where it went.
func (t *telemetry) route(group, topic, to, class string, reason headers.Reason) []metric.AddOption {
	is := routing{topic, to, t.class(class), reason}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.routes[is]
	if !ok {
		with = []metric.AddOption{metric.WithAttributes(semconv.MessagingDestinationName(topic), semconv.MessagingConsumerGroupName(group),
			keyTo.String(to), semconv.ErrorTypeKey.String(is.class), keyReason.String(string(reason)))}
		t.routes[is] = with
	}
	return with
}
